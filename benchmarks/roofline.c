/* The paper's scheme as a careful C programmer would write it: the reference of `make bench`.
 *
 * One slot after the other, terms in contiguous arrays, exp vectorised over the terms (polynomial of
 * degree 11 on four-wide vectors, fused multiply-add), dot products in four-wide accumulators. The
 * term that leaves the budget costs a second row of kernel values, for f at that term: this is what
 * the tails of kernelbank avoid. Squared loss, Gaussian kernels, one input.
 *
 * Built by the benchmark with: gcc -O3 -march=native -shared -fPIC
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef double v4 __attribute__((vector_size(32), aligned(8)));
typedef int64_t i4 __attribute__((vector_size(32), aligned(8)));

#define ALL(c) ((v4){c, c, c, c})

/* 2^(s c), s c <= 0 */
static inline v4 exp2_of_product(v4 s, v4 c) {
    const v4 magic = ALL(0x1.8p52);
    v4 t = s * c + magic;
    v4 r = s * c - (t - magic);
    v4 p = ALL(4.4558179083360645e-10);
    p = p * r + ALL(7.074194297288521e-09);
    p = p * r + ALL(1.0178057087733941e-07);
    p = p * r + ALL(1.3215432535912375e-06);
    p = p * r + ALL(1.5252733841556773e-05);
    p = p * r + ALL(0.00015403530463724353);
    p = p * r + ALL(0.001333355814640647);
    p = p * r + ALL(0.009618129107587256);
    p = p * r + ALL(0.055504108664821625);
    p = p * r + ALL(0.24022650695910158);
    p = p * r + ALL(0.6931471805599453);
    p = p * r + ALL(1.0);
    i4 bits = (i4)p + ((i4)t << 52);
    i4 big = t >= magic - ALL(1021.0);
    return (v4)(bits & big);
}

/* row[j] = exp(-(x - terms[j])^2 / 2w^2) */
static void kernel_row(double x, const double *terms, long n, double c, double *row) {
    for (long j = 0; j < n; j += 4) {
        v4 d = ALL(x) - *(const v4 *)(terms + j);
        *(v4 *)(row + j) = exp2_of_product(d * d, ALL(c));
    }
}

static double dot(const double *a, const double *b, long n) {
    v4 s0 = ALL(0.0), s1 = s0;
    long j = 0;
    for (; j + 8 <= n; j += 8) {
        s0 += *(const v4 *)(a + j) * *(const v4 *)(b + j);
        s1 += *(const v4 *)(a + j + 4) * *(const v4 *)(b + j + 4);
    }
    s0 += s1;
    double s = (s0[0] + s0[1]) + (s0[2] + s0[3]);
    for (; j < n; j++) s += a[j] * b[j];
    return s;
}

static int by_loss(const void *x, const void *y) {
    double a = **(const double *const *)x, b = **(const double *const *)y;
    return (a > b) - (a < b);
}

/* Only the exponential of the kernel rows: what the machine can do at most. */
double exponentials(long rows, long terms, long slots, const double *distances, const double *c) {
    double *row = aligned_alloc(32, (size_t)(terms + 8) * sizeof(double));
    double sum = 0;
    for (long n = 0; n < rows; n++)
        for (long p = 0; p < slots; p++) {
            for (long j = 0; j < terms; j += 4) {
                v4 s = *(const v4 *)(distances + j);
                *(v4 *)(row + j) = exp2_of_product(s, ALL(c[p]));
            }
            sum += row[n % terms];
        }
    free(row);
    return sum;
}

/* The whole scheme; returns the cumulative cost. */
double scheme(long samples, const double *x, const double *y, long P, const double *width, long L,
            long tau, double rate, double eta, double *predictions) {
    long room = tau + samples + 8;
    double *alpha = calloc((size_t)(P * room), sizeof(double));
    double *terms = calloc((size_t)room, sizeof(double));
    double *row = aligned_alloc(32, (size_t)(tau + 16) * sizeof(double));
    double *gram = calloc((size_t)(P * L * L), sizeof(double));
    double *value = calloc((size_t)(P * L), sizeof(double));
    double *norm = calloc((size_t)P, sizeof(double));
    double *theta = malloc((size_t)P * sizeof(double));
    double *a = malloc((size_t)P * sizeof(double)), *b = malloc((size_t)P * sizeof(double));
    double **order = malloc((size_t)P * sizeof(double *));
    double *mixed = malloc((size_t)L * sizeof(double)), g[L], kg[L], old[L];
    double gamma = 1 - rate * eta, total = 0;
    for (long p = 0; p < P; p++) theta[p] = 1.0 / P;
    for (long n = 0; n < samples; n++) {
        long W = n + 1 < L ? n + 1 : L;         /* samples in the window */
        long first = n < tau ? 0 : n - tau;     /* oldest term before this step */
        long have = n - first;
        const double *yw = y + n + 1 - W;
        double ridge = 0;
        memset(mixed, 0, (size_t)L * sizeof(double));
        terms[n] = x[n];
        for (long p = 0; p < P; p++) {
            double c = -0.5 / (width[p] * width[p]) * 1.4426950408889634;
            double *al = alpha + p * room, *G = gram + p * L * L, *v = value + p * L;
            kernel_row(x[n], terms + first, have + 1, c, row);
            double prediction = dot(al + first, row, have);
            /* slide the window's values and Gram matrix */
            if (n >= L) {
                memmove(v, v + 1, (size_t)(L - 1) * sizeof(double));
                for (long i = 0; i + 1 < L; i++)
                    memmove(G + i * L, G + (i + 1) * L + 1, (size_t)(L - 1) * sizeof(double));
            }
            v[W - 1] = prediction;
            for (long i = 0; i < W; i++)
                G[i * L + W - 1] = G[(W - 1) * L + i] = row[have - (W - 1) + i];
            double along = 0, steep = 0;
            for (long i = 0; i < W; i++) {
                mixed[i] += theta[p] * v[i];
                old[i] = v[i];
                g[i] = 2 * (v[i] - yw[i]);
                along += g[i] * v[i];
            }
            ridge += theta[p] * theta[p] * norm[p];
            for (long i = 0; i < W; i++) {
                double s = 0;
                for (long j = 0; j < W; j++) s += G[i * L + j] * g[j];
                kg[i] = s;
                steep += g[i] * s;
            }
            for (long j = first; j < n; j++) al[j] *= gamma;
            for (long i = 0; i < W; i++) al[n + 1 - W + i] -= rate * g[i];
            norm[p] = gamma * gamma * norm[p] - 2 * gamma * rate * along + rate * rate * steep;
            for (long i = 0; i < W; i++) v[i] = gamma * old[i] - rate * kg[i];
            if (n >= tau) {                     /* drop the oldest: a second row of kernel values */
                kernel_row(terms[first], terms + first, tau + 1, c, row);
                double f0 = dot(al + first, row, tau + 1), a0 = al[first];
                norm[p] += -2 * a0 * f0 + a0 * a0;
                for (long i = 0; i < W; i++) v[i] -= a0 * row[tau + 1 - W + i];
                al[first] = 0;
            }
            if (norm[p] < 0) norm[p] = 0;
            a[p] = 0.5 * eta * norm[p];
            b[p] = 0;
            for (long i = 0; i < W; i++) b[p] += (v[i] - yw[i]) * (v[i] - yw[i]);
            order[p] = b + p;
        }
        double cost = 0.5 * eta * ridge;
        for (long i = 0; i < W; i++) cost += (mixed[i] - yw[i]) * (mixed[i] - yw[i]);
        total += cost;
        predictions[n] = mixed[W - 1];
        /* the quadratic program, by sorting (insertion: P is small) */
        for (long i = 1; i < P && P <= 64; i++) {
            double *moved = order[i];
            long j = i - 1;
            while (j >= 0 && *order[j] > *moved) order[j + 1] = order[j], j--;
            order[j + 1] = moved;
        }
        if (P > 64) qsort(order, (size_t)P, sizeof(double *), by_loss);
        double s0 = 0, s1 = 0, mu = 0;
        for (long j = 0; j < P; j++) {
            long p = order[j] - b;
            double delta = a[p] > 1e-14 ? a[p] : 1e-14;
            s0 += 1 / delta;
            s1 += b[p] / delta;
            if (b[p] - (2 + s1) / s0 >= 0) break;
            mu = (2 + s1) / s0;
        }
        for (long p = 0; p < P; p++) {
            double delta = a[p] > 1e-14 ? a[p] : 1e-14, t = (mu - b[p]) / (2 * delta);
            theta[p] = t > 0 ? t : 0;
        }
    }
    free(alpha), free(terms), free(row), free(gram), free(value), free(norm), free(theta);
    free(a), free(b), free(order), free(mixed);
    return total;
}
