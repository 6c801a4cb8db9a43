// The methods of math.hpp, and their tables.
//
// | function     | method                                                           | error |
// |--------------|------------------------------------------------------------------|-------|
// | exp          | x = (128 k + i) ln2/128 + r; a table of 2^(i/128), a series of r | 0.51  |
// | expm1        | the same, less 1, as a sum of two; below 1/16 a series           | 0.58  |
// | log          | x = 2^k z; c near 1/z from a table, a series of r = c z - 1      | 0.50  |
// | log1p        | log of 1 + x, kept as a sum of two                               | 0.51  |
// | tanh         | -E / (E + 2), E = expm1(-2 x) as a sum of two, for x > 0         | 0.56  |
// | asinh        | log of x + sqrt(x^2 + 1), kept as a sum of two, for x > 0        | 0.51  |
// | power        | exp of y log x, with the logarithm as a sum of two               | 0.53  |
// | sine, cosine | as many digits of 2/pi as the angle needs, then a series         | 0.61  |
// | of lanes     | pi/2 in three parts, then a polynomial; large angles as above    | 2     |
//
// The error is the largest that was seen, in units of the last place (the last line: a bound).
// Rounding the exact value would give 0.5. Results too small for a normal float are denormal and
// rounded as well.
//
// But for the lanes nothing is fitted: the polynomials are Taylor series on intervals so short that
// the terms left out do not count, and the tables and the parts of ln 2 and pi are rounded from 60
// digits or more.
//
// References: P. T. P. Tang, Table-driven implementation of the exponential function (and: of the
// logarithm function) in IEEE floating-point arithmetic, ACM TOMS 15 (1989) and 16 (1990). T. J.
// Dekker, A floating-point technique for extending the available precision, Numer. Math. 18 (1971),
// for sums of two numbers. M. Payne, R. Hanek, Radian reduction for trigonometric functions, SIGNUM
// Newsletter 18 (1983). The tables of S. Nagy, Arm Optimized Routines (2018), are alike.
#include "math.hpp"

#include <bit>

namespace kb {

// --- tables: rounded from 60 digits or more; nothing is fitted ----------------------------------

/// Row i: s = 2^(i/128) rounded, and t with s (1 + t) = 2^(i/128).
constexpr TwoParts POWERS[128] = {
    {0x1p0, 0.0}, {0x1.0163da9fb3335p0, 0x1.b3b4f1a88bf6ep-54},
    {0x1.02c9a3e778061p0, -0x1.160139cd8dc5dp-56}, {0x1.04315e86e7f85p0, -0x1.05e7a108766d1p-54},
    {0x1.059b0d3158574p0, 0x1.cd2523567f613p-55}, {0x1.0706b29ddf6dep0, -0x1.bce8023f98efap-55},
    {0x1.0874518759bc8p0, 0x1.0f74e61e6c861p-57}, {0x1.09e3ecac6f383p0, 0x1.0a3e45b33d399p-54},
    {0x1.0b5586cf9890fp0, 0x1.79aa65d837b6dp-54}, {0x1.0cc922b7247f7p0, 0x1.eb51a92fdeffcp-55},
    {0x1.0e3ec32d3d1a2p0, 0x1.ebe3d702f9cd1p-60}, {0x1.0fb66affed31bp0, -0x1.a033489906e0bp-57},
    {0x1.11301d0125b51p0, -0x1.556522a2fbd0ep-54}, {0x1.12abdc06c31ccp0, -0x1.080ef8c4eea55p-58},
    {0x1.1429aaea92dep0, -0x1.1c923b9d5f416p-54}, {0x1.15a98c8a58e51p0, 0x1.0d3e3e95c55afp-55},
    {0x1.172b83c7d517bp0, -0x1.01b15eaa59348p-55}, {0x1.18af9388c8deap0, -0x1.f1ff055de323dp-55},
    {0x1.1a35beb6fcb75p0, 0x1.b898c3f1353bfp-55}, {0x1.1bbe084045cd4p0, -0x1.6d99c7611eb26p-54},
    {0x1.1d4873168b9aap0, 0x1.aecf73e3a2f6p-54}, {0x1.1ed5022fcd91dp0, -0x1.fe782cb86389dp-55},
    {0x1.2063b88628cd6p0, 0x1.a6f4144a6c38dp-55}, {0x1.21f49917ddc96p0, 0x1.07a05b0e4047dp-55},
    {0x1.2387a6e756238p0, 0x1.68efde3a8a894p-54}, {0x1.251ce4fb2a63fp0, 0x1.75e18f274487dp-55},
    {0x1.26b4565e27cddp0, 0x1.0472b981fe7f2p-55}, {0x1.284dfe1f56381p0, -0x1.6b87b3f71085ep-54},
    {0x1.29e9df51fdee1p0, 0x1.2f7e16d09ab31p-55}, {0x1.2b87fd0dad99p0, -0x1.d219b1a6fbffap-60},
    {0x1.2d285a6e4030bp0, 0x1.b3782720c0ab4p-55}, {0x1.2ecafa93e2f56p0, 0x1.e149289cecb8fp-57},
    {0x1.306fe0a31b715p0, 0x1.34d754db0abb6p-55}, {0x1.32170fc4cd831p0, 0x1.64201e2ac744cp-55},
    {0x1.33c08b26416ffp0, 0x1.fdd395dd3f84ap-55}, {0x1.356c55f929ff1p0, -0x1.6a3803b8e5b04p-55},
    {0x1.371a7373aa9cbp0, -0x1.24aedcc4b5068p-54}, {0x1.38cae6d05d866p0, -0x1.907f81b512d8ep-54},
    {0x1.3a7db34e59ff7p0, -0x1.1d1e83e9436d2p-56}, {0x1.3c32dc313a8e5p0, -0x1.91919b3ce1b15p-54},
    {0x1.3dea64c123422p0, 0x1.59f48a72a4c6dp-55}, {0x1.3fa4504ac801cp0, -0x1.312607a28698ap-54},
    {0x1.4160a21f72e2ap0, -0x1.8a78f4817895bp-58}, {0x1.431f5d950a897p0, -0x1.c2c9b67499a1bp-56},
    {0x1.44e086061892dp0, 0x1.363ed60c2ac11p-59}, {0x1.46a41ed1d0057p0, 0x1.666093b0664efp-54},
    {0x1.486a2b5c13cdp0, 0x1.ecce1daa10379p-57}, {0x1.4a32af0d7d3dep0, 0x1.3ff8e3f0f123p-54},
    {0x1.4bfdad5362a27p0, 0x1.690cebb7aafbp-56}, {0x1.4dcb299fddd0dp0, 0x1.31dbdeb54e077p-54},
    {0x1.4f9b2769d2ca7p0, -0x1.f94340071a38ep-55}, {0x1.516daa2cf6642p0, -0x1.7deccdc93a349p-55},
    {0x1.5342b569d4f82p0, -0x1.8dec6bd0f385fp-56}, {0x1.551a4ca5d920fp0, -0x1.61246ec7b5cf6p-55},
    {0x1.56f4736b527dap0, 0x1.3350518fdd78ep-54}, {0x1.58d12d497c7fdp0, 0x1.b98b72f8a9b05p-56},
    {0x1.5ab07dd485429p0, 0x1.063e1e21c5409p-54}, {0x1.5c9268a5946b7p0, 0x1.4c7855019c6eap-60},
    {0x1.5e76f15ad2148p0, 0x1.432e62b64c035p-54}, {0x1.605e1b976dc09p0, -0x1.ce44a6199769fp-55},
    {0x1.6247eb03a5585p0, -0x1.c33c53bef4da8p-55}, {0x1.6434634ccc32p0, -0x1.45378892be9aep-55},
    {0x1.6623882552225p0, -0x1.3cedd78565858p-54}, {0x1.68155d44ca973p0, 0x1.710aa807e1964p-58},
    {0x1.6a09e667f3bcdp0, -0x1.3b3efbf5e2228p-54}, {0x1.6c012750bdabfp0, -0x1.a12ad8734b982p-57},
    {0x1.6dfb23c651a2fp0, -0x1.367efb86da9eep-57}, {0x1.6ff7df9519484p0, -0x1.0dc3d54e08851p-55},
    {0x1.71f75e8ec5f74p0, -0x1.81f647e5a3ecfp-56}, {0x1.73f9a48a58174p0, -0x1.6ee4ac08b7dbp-55},
    {0x1.75feb564267c9p0, -0x1.619321e55e68ap-55}, {0x1.780694fde5d3fp0, 0x1.09ccb5e09d4d3p-54},
    {0x1.7a11473eb0187p0, -0x1.b32dcb94da51dp-56}, {0x1.7c1ed0130c132p0, 0x1.4ecfd5467c06bp-54},
    {0x1.7e2f336cf4e62p0, 0x1.5ebe1abd66c55p-57}, {0x1.80427543e1a12p0, -0x1.8a1c52fb3cf42p-55},
    {0x1.82589994cce13p0, -0x1.369b6f13b3734p-54}, {0x1.8471a4623c7adp0, -0x1.05e843a19ff1ep-55},
    {0x1.868d99b4492edp0, -0x1.4d450d872576ep-54}, {0x1.88ac7d98a6699p0, 0x1.0ad675b0e8ap-54},
    {0x1.8ace5422aa0dbp0, 0x1.db72fc1f0eab4p-55}, {0x1.8cf3216b5448cp0, -0x1.5b6609cc5e7ffp-57},
    {0x1.8f1ae99157736p0, 0x1.bf68359f35f44p-56}, {0x1.9145b0b91ffc6p0, -0x1.3091fa71e3d83p-54},
    {0x1.93737b0cdc5e5p0, -0x1.da9b88b6c1e29p-58}, {0x1.95a44cbc8520fp0, -0x1.c23f97c90b959p-57},
    {0x1.97d829fde4e5p0, -0x1.2434322f4f9aap-54}, {0x1.9a0f170ca07bap0, -0x1.5ca6cd7668e4bp-55},
    {0x1.9c49182a3f09p0, 0x1.1affc2b91ce27p-56}, {0x1.9e86319e32323p0, 0x1.dd235e10a73bbp-57},
    {0x1.a0c667b5de565p0, -0x1.7c50422622263p-55}, {0x1.a309bec4a2d33p0, 0x1.b1c86e3e231d5p-55},
    {0x1.a5503b23e255dp0, -0x1.1bbd1d3bcbb15p-54}, {0x1.a799e1330b358p0, 0x1.0cc319cee31d2p-54},
    {0x1.a9e6b5579fdbfp0, 0x1.469846e735ab3p-55}, {0x1.ac36bbfd3f37ap0, -0x1.2dfcd978e9db4p-55},
    {0x1.ae89f995ad3adp0, 0x1.c1a7792cb3387p-55}, {0x1.b0e07298db666p0, -0x1.07b8f4ad1d9fap-54},
    {0x1.b33a2b84f15fbp0, -0x1.5c3d956dcaebap-58}, {0x1.b59728de5593ap0, -0x1.0a40e3da6f64p-54},
    {0x1.b7f76f2fb5e47p0, -0x1.8d6f438ad9334p-57}, {0x1.ba5b030a1064ap0, -0x1.1eee26b588a35p-54},
    {0x1.bcc1e904bc1d2p0, 0x1.4ffd70a5fddcdp-56}, {0x1.bf2c25bd71e09p0, -0x1.1bdfbfa9298acp-54},
    {0x1.c199bdd85529cp0, 0x1.36eae30af0cb3p-56}, {0x1.c40ab5fffd07ap0, 0x1.ee3325c9ffd94p-55},
    {0x1.c67f12e57d14bp0, 0x1.4e08fd10959acp-55}, {0x1.c8f6d9406e7b5p0, 0x1.3cdaf384e1a67p-57},
    {0x1.cb720dcef9069p0, 0x1.76b2c6c921968p-57}, {0x1.cdf0b555dc3fap0, -0x1.08a1883ccb5d2p-55},
    {0x1.d072d4a07897cp0, -0x1.fad5d3ffffa6fp-55}, {0x1.d2f87080d89f2p0, -0x1.00dae3875a949p-54},
    {0x1.d5818dcfba487p0, 0x1.4a385a63d07a7p-56}, {0x1.d80e316c98398p0, -0x1.2919e2040220fp-55},
    {0x1.da9e603db3285p0, 0x1.e5a50d5c192acp-55}, {0x1.dd321f301b46p0, 0x1.43a59ac016b4bp-55},
    {0x1.dfc97337b9b5fp0, -0x1.2d52107b43e1fp-55}, {0x1.e264614f5a129p0, -0x1.92ab93b470dc9p-55},
    {0x1.e502ee78b3ff6p0, 0x1.4b604603a88d3p-56}, {0x1.e7a51fbc74c83p0, 0x1.3c5ec519d7271p-55},
    {0x1.ea4afa2a490dap0, -0x1.ff7128fd391fp-55}, {0x1.ecf482d8e67f1p0, -0x1.dae98e223747dp-55},
    {0x1.efa1bee615a27p0, 0x1.ec3bc41aa2008p-55}, {0x1.f252b376bba97p0, 0x1.42b94c3a9eb32p-55},
    {0x1.f50765b6e454p0, 0x1.a64a931d185eep-55}, {0x1.f7bfdad9cbe14p0, -0x1.e37bae43be3edp-55},
    {0x1.fa7c1819e90d8p0, 0x1.7893b4d91cd9dp-56}, {0x1.fd3c22b8f71f1p0, 0x1.305c14160cc89p-58},
};

/// For the z of interval i (of 128 equal ranges of bits from 0.70703125 to twice that): 256 c, with
/// c near 1/z. c is a multiple of 2^-7 for z < 1 and of 2^-8 for z > 1, so that c z - 1 is exact
/// and below 2^-7; c = 1 next to 1, so that the logarithm there has all its digits.
constexpr short INVERSES[128] = {
    362, 360, 358, 356, 354, 352, 350, 348, 346, 344, 342, 340, 338, 336, 336, 334, 332, 330, 328,
    326, 326, 324, 322, 320, 318, 318, 316, 314, 312, 312, 310, 308, 306, 306, 304, 302, 302, 300,
    298, 298, 296, 294, 294, 292, 290, 290, 288, 286, 286, 284, 284, 282, 280, 280, 278, 278, 276,
    274, 274, 272, 272, 270, 270, 268, 266, 266, 264, 264, 262, 262, 260, 260, 258, 258, 256, 256,
    253, 251, 249, 247, 245, 244, 242, 240, 238, 237, 235, 233, 232, 230, 228, 227, 225, 224, 222,
    221, 219, 218, 216, 215, 213, 212, 211, 209, 208, 207, 205, 204, 203, 202, 200, 199, 198, 197,
    196, 194, 193, 192, 191, 190, 189, 188, 187, 186, 185, 184, 183, 182,
};

/// -log c in two parts, the first of which is a multiple of 2^-42.
constexpr TwoParts LOGARITHMS[128] = {
    {-0x1.62c82f2b9cp-2, -0x1.e54bdbd7c8a98p-44}, {-0x1.5d1bdbf581p-2, 0x1.8d6bdc9c7c238p-44},
    {-0x1.5767717456p-2, 0x1.64ead9524d7cap-44}, {-0x1.51aad872ep-2, 0x1.f4bd8db0a7cc1p-44},
    {-0x1.4be5f95778p-2, 0x1.d7c92cd9ad824p-44}, {-0x1.4618bc21c6p-2, 0x1.3d82f484c84ccp-46},
    {-0x1.404308686ap-2, -0x1.f8ef43049f7d3p-44}, {-0x1.3a64c55694p-2, -0x1.7a71cbcd735dp-44},
    {-0x1.347dd9a988p-2, 0x1.5594dd4c58092p-45}, {-0x1.2e8e2bae12p-2, 0x1.67b1e99b72bd8p-45},
    {-0x1.2895a13de8p-2, -0x1.a8d7ad24c13fp-44}, {-0x1.22941fbcf8p-2, 0x1.a6976f5eb0963p-44},
    {-0x1.1c898c169ap-2, 0x1.81410e5c62affp-44}, {-0x1.1675cababap-2, -0x1.8380e731f55c4p-44},
    {-0x1.1675cababap-2, -0x1.8380e731f55c4p-44}, {-0x1.1058bf9ae5p-2, 0x1.4ab9d817d52cdp-44},
    {-0x1.0a324e2739p-2, -0x1.c6bee7ef4030ep-47}, {-0x1.0402594b4dp-2, -0x1.036b89ef42d7fp-48},
    {-0x1.fb9186d5e4p-3, 0x1.d572aab993c87p-47}, {-0x1.ef0adcbdc6p-3, 0x1.b26b79c86af24p-45},
    {-0x1.ef0adcbdc6p-3, 0x1.b26b79c86af24p-45}, {-0x1.e27076e2bp-3, 0x1.a342c2af0003cp-44},
    {-0x1.d5c216b4fcp-3, 0x1.1ba91bbca681bp-45}, {-0x1.c8ff7c79aap-3, 0x1.7794f689f8434p-45},
    {-0x1.bc286742d8p-3, -0x1.9ac53f39d121cp-44}, {-0x1.bc286742d8p-3, -0x1.9ac53f39d121cp-44},
    {-0x1.af3c94e80cp-3, 0x1.a4e633fcd9066p-52}, {-0x1.a23bc1fe2cp-3, 0x1.539cd91dc9f0bp-44},
    {-0x1.9525a9cf46p-3, 0x1.297137d9f158fp-44}, {-0x1.9525a9cf46p-3, 0x1.297137d9f158fp-44},
    {-0x1.87fa06520cp-3, -0x1.22120401202fcp-44}, {-0x1.7ab890210ep-3, 0x1.bdb9072534a58p-45},
    {-0x1.6d60fe719ep-3, 0x1.bc6e557134767p-44}, {-0x1.6d60fe719ep-3, 0x1.bc6e557134767p-44},
    {-0x1.5ff3070a7ap-3, 0x1.8586f183bebf2p-44}, {-0x1.526e5e3a1cp-3, 0x1.790ba37fc5238p-44},
    {-0x1.526e5e3a1cp-3, 0x1.790ba37fc5238p-44}, {-0x1.44d2b6ccb8p-3, 0x1.70cc16135783cp-46},
    {-0x1.371fc201e8p-3, -0x1.ee8779b2d8abcp-44}, {-0x1.371fc201e8p-3, -0x1.ee8779b2d8abcp-44},
    {-0x1.29552f82p-3, 0x1.5b967f4471dfcp-44}, {-0x1.1b72ad52f6p-3, -0x1.e80a41811a396p-45},
    {-0x1.1b72ad52f6p-3, -0x1.e80a41811a396p-45}, {-0x1.0d77e7cd08p-3, -0x1.cb2cd2ee2f482p-44},
    {-0x1.fec9131dcp-4, 0x1.54555d1ae6607p-44}, {-0x1.fec9131dcp-4, 0x1.54555d1ae6607p-44},
    {-0x1.e27076e2bp-4, 0x1.a342c2af0003cp-45}, {-0x1.c5e548f5bcp-4, -0x1.d0c57585fbe06p-46},
    {-0x1.c5e548f5bcp-4, -0x1.d0c57585fbe06p-46}, {-0x1.a926d3a4acp-4, -0x1.563650bd22a9cp-44},
    {-0x1.a926d3a4acp-4, -0x1.563650bd22a9cp-44}, {-0x1.8c345d6318p-4, -0x1.b20f5acb42a66p-44},
    {-0x1.6f0d28ae58p-4, 0x1.4b4641b664613p-44}, {-0x1.6f0d28ae58p-4, 0x1.4b4641b664613p-44},
    {-0x1.51b073f06p-4, -0x1.83f69278e686ap-44}, {-0x1.51b073f06p-4, -0x1.83f69278e686ap-44},
    {-0x1.341d7961bcp-4, -0x1.1d0929983761p-44}, {-0x1.16536eea38p-4, 0x1.47c5e768fa309p-46},
    {-0x1.16536eea38p-4, 0x1.47c5e768fa309p-46}, {-0x1.f0a30c0118p-5, 0x1.d599e83368e91p-45},
    {-0x1.f0a30c0118p-5, 0x1.d599e83368e91p-45}, {-0x1.b42dd71198p-5, 0x1.c827ae5d6704cp-46},
    {-0x1.b42dd71198p-5, 0x1.c827ae5d6704cp-46}, {-0x1.77458f633p-5, 0x1.181dce586af09p-44},
    {-0x1.39e87b9fe8p-5, -0x1.eafd480ad9015p-44}, {-0x1.39e87b9fe8p-5, -0x1.eafd480ad9015p-44},
    {-0x1.f829b0e78p-6, -0x1.980267c7e09e4p-45}, {-0x1.f829b0e78p-6, -0x1.980267c7e09e4p-45},
    {-0x1.7b91b07d6p-6, 0x1.3b955b602ace4p-44}, {-0x1.7b91b07d6p-6, 0x1.3b955b602ace4p-44},
    {-0x1.fc0a8b0fcp-7, -0x1.f1e7cf6d3a69cp-50}, {-0x1.fc0a8b0fcp-7, -0x1.f1e7cf6d3a69cp-50},
    {-0x1.fe02a6b1p-8, -0x1.9e23f0dda40e4p-46}, {-0x1.fe02a6b1p-8, -0x1.9e23f0dda40e4p-46},
    {0.0, 0.0}, {0.0, 0.0}, {0x1.82448a388p-7, 0x1.4554412c584ep-44},
    {0x1.432a92598p-6, 0x1.98139928637fep-47}, {0x1.c63d2ec15p-6, -0x1.5439ce030a687p-44},
    {0x1.252f32f8dp-5, 0x1.83e9ae021b67bp-45}, {0x1.67c94f2d48p-5, 0x1.dac20827cca0cp-44},
    {0x1.894aa149f8p-5, 0x1.9a19a8be97661p-44}, {0x1.ccb73cddd8p-5, 0x1.965c36e09f5fep-44},
    {0x1.08598b59e4p-4, -0x1.7e5dd7009902cp-46}, {0x1.2aa04a447p-4, 0x1.7a48ba8b1cb41p-44},
    {0x1.3bdf5a7d2p-4, -0x1.19bd0ad125895p-44}, {0x1.5e95a4d978p-4, 0x1.1cb7ce1d17171p-44},
    {0x1.8197e2f41p-4, -0x1.c0fe460d20041p-44}, {0x1.9335e5d594p-4, 0x1.3115c3abd47dap-45},
    {0x1.b6ac88dad4p-4, 0x1.b1bdff50225c7p-44}, {0x1.da72763844p-4, 0x1.a89401fa71733p-46},
    {0x1.ec739830ap-4, 0x1.11fcba80cdd1p-44}, {0x1.08598b59e4p-3, -0x1.7e5dd7009902cp-45},
    {0x1.1178e8227ep-3, 0x1.1ef78ce2d07f2p-45}, {0x1.23d712a49cp-3, 0x1.00d238fd3df5cp-46},
    {0x1.2d1610c868p-3, 0x1.39d6ccb81b4a1p-47}, {0x1.3fb45a5992p-3, 0x1.19713c0cae559p-44},
    {0x1.4913d8333cp-3, -0x1.53e43558124c4p-44}, {0x1.5bf406b544p-3, -0x1.27023eb68981cp-46},
    {0x1.6574ebe8c2p-3, -0x1.98c1d34f0f462p-44}, {0x1.7898d85444p-3, 0x1.8e67be3dbaf3fp-44},
    {0x1.823c16551ap-3, 0x1.e0ddb9a631e83p-46}, {0x1.8beafeb39p-3, -0x1.73d54aae92cd1p-47},
    {0x1.9f6c40708ap-3, -0x1.337d94bcd3f43p-44}, {0x1.a93ed3c8aep-3, -0x1.8724350562169p-45},
    {0x1.b31d8575bcp-3, 0x1.c794e562a63cbp-44}, {0x1.c6ffbc6fp-3, 0x1.ee138d3a69d43p-44},
    {0x1.d1037f2656p-3, -0x1.84a7e75b6f6e4p-47}, {0x1.db13db0d48p-3, 0x1.2806a847527e6p-44},
    {0x1.e530effe72p-3, -0x1.fdbdbb13f7c18p-44}, {0x1.f991c6cb3cp-3, -0x1.90d04cd7cc834p-44},
    {0x1.01eae5626cp-2, 0x1.a43dcfade85aep-44}, {0x1.07138604d6p-2, -0x1.e76324e912b17p-44},
    {0x1.0c42d67616p-2, 0x1.7188b163ceae9p-45}, {0x1.1178e8227ep-2, 0x1.1ef78ce2d07f2p-44},
    {0x1.1bf99635a7p-2, -0x1.1ac89575c2125p-44}, {0x1.214456d0ecp-2, -0x1.caf0428b728a3p-44},
    {0x1.269621134ep-2, -0x1.1b61f10522625p-44}, {0x1.2bef07cdc9p-2, 0x1.a9cfa4a5004f4p-45},
    {0x1.314f1e1d36p-2, -0x1.8e27ad3213cb8p-45}, {0x1.36b6776be1p-2, 0x1.16ecdb0f177c8p-46},
    {0x1.3c25277333p-2, 0x1.83b54b606bd5cp-46}, {0x1.419b423d5fp-2, -0x1.ce379226de3ecp-44},
    {0x1.4718dc271cp-2, 0x1.06c18fb4c14c5p-44}, {0x1.4c9e09e173p-2, -0x1.e20891b0ad8a4p-45},
    {0x1.522ae0738ap-2, 0x1.ebe708164c759p-45}, {0x1.57bf753c8dp-2, 0x1.fadedee5d40efp-46},
    {0x1.5d5bddf596p-2, -0x1.a0b2a08a465dcp-47},
};

/// 2/pi in words of 64 bits, the first of which is its integer part, 0.
constexpr std::uint64_t TURN[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

static std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
static double float_of(std::int64_t bits) { return std::bit_cast<double>(bits); }

// --- exp -----------------------------------------------------------------------------------------

// In two parts; the first ones have so few digits that their products with exponents are exact.
constexpr TwoParts LN2 = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
constexpr TwoParts LN2_STEP = {0x1.62e42fefap-8, 0x1.cf79abc9e3b3ap-47};  // ln2 / 128
constexpr double STEPS_PER_ONE = 0x1.71547652b82fep7;                     // 128 / ln2

/// 2^k (s + s t), with 1 <= s < 2 and |t| < 0.003.
struct ExpParts {
  std::int64_t k;
  double s, t;
};

/// exp(x + rest) for |x| < 750.
static ExpParts exp_parts(double x, double rest) {
  double steps = (x * STEPS_PER_ONE + ROUND) - ROUND;
  double r = fma(steps, -LN2_STEP.low, fma(steps, -LN2_STEP.high, x)) + rest;
  auto count = std::int64_t(steps);
  const auto [power, error] = POWERS[count & 127];
  double r2 = r * r;
  // The series of exp(r) - 1; the next term is below 2^-60.
  double high = fma(r, 1.0 / 120, 1.0 / 24);
  double low = fma(r, 1.0 / 6, 0.5);
  double t = r + fma(r2, fma(r2, high, low), error);
  return {count >> 7, power, t};
}

/// s 2^k for 1 <= s < 2, where the result is normal.
static double times_power(double s, std::int64_t k) {
  return float_of(bits_of(s) + k * (1LL << 52));
}

/// 2^k (s + s t), rounded once, also above and below the normal range.
static double scaled(ExpParts parts) {
  auto [k, s, t] = parts;
  if (-1022 < k && k < 1023) {
    double scale = times_power(s, k);
    return fma(scale, t, scale);
  }
  if (k > 0) {
    double scale = times_power(s, k - 1);
    return 2.0 * fma(scale, t, scale);
  }
  // Times 2^1022. Below 1 a sum with 1 rounds to the places that a denormal has.
  double scale = times_power(s, k + 1022);
  double y = fma(scale, t, scale);
  if (y < 1.0) {
    double rest = fma(scale, t, scale - y);
    double high = 1.0 + y;
    y = (high + ((1.0 - high + y) + rest)) - 1.0;
  }
  return 0x1p-1022 * y;
}

/// e^x.
double exp(double x) {
  if (!(-746.0 < x && x < 710.0)) return std::isnan(x) ? x : (x > 0.0 ? INF : 0.0);
  return scaled(exp_parts(x, 0.0));
}

// --- expm1 ---------------------------------------------------------------------------------------

/// e^x - 1 for -45 < x < 45.
static TwoParts expm1_parts(double x) {
  if (absolute(x) < 0.0625) {
    // The series without its first term, to x^10; the next is below 2^-64 x.
    double x2 = x * x;
    double low = fma(x2, fma(x, 1.0 / 120, 1.0 / 24), fma(x, 1.0 / 6, 0.5));
    double high = fma(x2, fma(x, 1.0 / 362880, 1.0 / 40320), fma(x, 1.0 / 5040, 1.0 / 720));
    high = fma(x2 * x2, 1.0 / 3628800, high);
    double p = x2 * fma(x2 * x2, high, low);
    double sum = x + p;
    return {sum, (x - sum) + p};
  }
  auto [k, s, t] = exp_parts(x, 0.0);
  double scale = times_power(s, k);
  double less = scale - 1.0;
  double back = less - scale;
  double rest = fma(scale, t, (scale - (less - back)) - (1.0 + back));
  double sum = less + rest;
  return {sum, (less - sum) + rest};
}

/// e^x - 1, with all digits also for small x.
double expm1(double x) {
  if (absolute(x) < 0x1p-54 || std::isnan(x)) return x;
  if (x <= -45.0) return -1.0;
  if (x >= 45.0) return exp(x);
  return expm1_parts(x).high;
}

// --- log -----------------------------------------------------------------------------------------

/// The logarithm of a positive finite number, right to 2^-67 of it.
static TwoParts log_parts(double x) {
  constexpr std::int64_t lowest = 0x3FE6ALL << 44;  // of 0.70703125: z is from here to twice this
  constexpr std::int64_t one = 1LL << 52;           // one more exponent
  std::int64_t bits = bits_of(x);
  bool denormal = bits < one;
  if (denormal) bits = bits_of(x * 0x1p54);
  std::int64_t distance = bits - lowest;
  std::int64_t exponent = distance >> 52;
  const auto interval = (distance >> 45) & 127;
  const auto [log_high, log_low] = LOGARITHMS[interval];
  double z = float_of(bits - exponent * one);
  auto k = double(denormal ? exponent - 54 : exponent);
  double r = fma(z, INVERSES[interval] / 256.0, -1.0);         // exact
  double base = fma(k, LN2.high, log_high);  // exact
  // base + r - r^2 / 2, with what each sum loses.
  double first = base + r;
  double half = -0.5 * r;
  double square = half * r;
  double high = first + square;
  double lost = fma(half, r, -square) + ((first - high) + square);
  lost += fma(k, LN2.low, log_low) + ((base - first) + r);
  // The series from r^3 to r^10; the next term is below 2^-73 r.
  double r2 = r * r;
  double low = fma(r2, fma(r, -1.0 / 6, 1.0 / 5), fma(r, -1.0 / 4, 1.0 / 3));
  double tail = fma(r2, fma(r, -1.0 / 10, 1.0 / 9), fma(r, -1.0 / 8, 1.0 / 7));
  lost = fma(r2 * r, fma(r2 * r2, tail, low), lost);
  double sum = high + lost;
  return {sum, (high - sum) + lost};
}

/// log(x + rest) as one number, for rest within an ulp of x.
static double log_of_sum(double x, double rest) {
  auto [high, low] = log_parts(x);
  return high + (low + rest / x);
}

/// The natural logarithm.
double log(double x) {
  if (!(0.0 < x && x < INF)) return x == 0.0 ? -INF : (x < 0.0 ? NOT_A_NUMBER : x);
  return log_parts(x).high;
}

/// log(1 + x), with all digits also for small x.
double log1p(double x) {
  if (!(-1.0 < x && x < INF)) return x == -1.0 ? -INF : (x < -1.0 ? NOT_A_NUMBER : x);
  if (absolute(x) < 0x1p-20) return fma(x * x, fma(x, 1.0 / 3, -0.5), x);
  double sum = 1.0 + x;
  double back = sum - x;
  return log_of_sum(sum, (1.0 - back) + (x - (sum - back)));
}

// --- tanh and asinh ------------------------------------------------------------------------------

/// The hyperbolic tangent.
double tanh(double x) {
  double size = absolute(x);
  if (size < 0x1p-28 || std::isnan(x)) return x;
  if (size >= 20.0) return std::copysign(1.0, x);
  auto [high, low] = expm1_parts(-2.0 * size);
  double below = 2.0 + high;
  double below_rest = ((2.0 - below) + high) + low;
  double q = high / below;
  return std::copysign(q + (fma(-q, below, high) + fma(-q, below_rest, low)) / below, x);
}

/// The inverse of the hyperbolic sine.
double asinh(double x) {
  double size = absolute(x);
  if (!(size < INF)) return x;
  if (size < 0x1p-14) return std::copysign(fma(size * size * size, -1.0 / 6, size), x);
  if (size > 0x1p28) {  // log(2 x); the rest is below x^-2
    auto [high, low] = log_parts(size);
    double sum = LN2.high + high;
    return std::copysign(sum + (((high - sum) + LN2.high) + (low + LN2.low)), x);
  }
  // root + root_rest = sqrt(x^2 + 1)
  double square = size * size;
  double inside = square + 1.0;
  double back = inside - square;
  double inside_rest = (square - (inside - back)) + (1.0 - back) + fma(size, size, -square);
  double root = sqrt(inside);
  double root_rest = (fma(-root, root, inside) + inside_rest) / (2.0 * root);
  // root is above x, so that the sum of both loses (root - sum) + size.
  double sum = root + size;
  return std::copysign(log_of_sum(sum, ((root - sum) + size) + root_rest), x);
}

// --- power ---------------------------------------------------------------------------------------

/// x^y. Of a negative x it is NaN unless y is an integer, as in C.
double power(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  double size = absolute(x), exponent = absolute(y);
  bool odd = exponent < 0x1p53 && double(std::int64_t(exponent)) == exponent &&
             (std::int64_t(exponent) & 1) == 1;
  double sign = odd ? std::copysign(1.0, x) : 1.0;
  if (size == 0.0 || size == INF || exponent == INF) {
    double limit = (size > 1.0) == (y > 0.0) ? INF : 0.0;
    return std::copysign(size == 1.0 ? 1.0 : limit, sign);
  }
  bool integer = exponent >= 0x1p52 || double(std::int64_t(exponent)) == exponent;
  if (x < 0.0 && !integer) return NOT_A_NUMBER;
  auto [high, low] = log_parts(size);
  double product = y * high;
  if (!(-746.0 < product && product < 710.0))
    return std::copysign(product > 0.0 ? INF : 0.0, sign);
  ExpParts parts = exp_parts(product, fma(y, low, fma(y, high, -product)));
  return std::copysign(scaled(parts), sign);
}

// --- sine and cosine of one angle, of any size ---------------------------------------------------

// An angle is n quarter turns plus a remainder: x 2/pi is computed in integers, with as many digits
// of 2/pi as the angle needs (Payne and Hanek). The remainder, a sum of two floats, goes into a
// Taylor series.

constexpr TwoParts MINUS_SIXTH = {-1.0 / 6, -9.25185853854297e-18};

/// n modulo 4, and r + rest, with angle = n pi/2 + r + rest and |r| <= pi/4.
struct ReducedAngle {
  std::int64_t n;
  double r, rest;
};

/// 64 bits of 2/pi that start `shift` bits into word number `place`.
static std::uint64_t turn_bits(std::int64_t place, int shift) {
  return TURN[place] << shift | TURN[place + 1] >> 1 >> (63 - shift);
}

/// The upper 64 of the 128 bits of a product.
static std::uint64_t high_product(std::uint64_t x, std::uint64_t y) {
  __extension__ typedef unsigned __int128 Wide;
  return std::uint64_t(Wide(x) * y >> 64);
}

/// For 1/2 < size < infinity.
///
/// With size = m 2^e, m an integer, m 2^e 2/pi is wanted modulo 4. Bits of 2/pi whose weight with
/// 2^e is 4 or more are left out; the next 192 give a product of which 2 bits are n and at least
/// 128 of the fraction are right. The fraction of a float is at least 2^-62.
static ReducedAngle reduced_by_bits(double size) {
  std::int64_t bits = bits_of(size);
  auto m = std::uint64_t((bits & ((1LL << 52) - 1)) | (1LL << 52));
  std::int64_t start = (bits >> 52) - 1075 + 62;
  std::int64_t place = start >> 6;
  int shift = int(start & 63);
  std::uint64_t a = turn_bits(place, shift), b = turn_bits(place + 1, shift),
                c = turn_bits(place + 2, shift);
  std::uint64_t low = m * b;
  std::uint64_t middle = low + high_product(m, c);
  std::uint64_t carry = middle < low ? 1 : 0;
  std::uint64_t top = m * a + high_product(m, b) + carry;
  auto n = std::int64_t(top >> 62);
  std::uint64_t high = top << 2 | middle >> 62;
  low = middle << 2 | (m * c) >> 62;
  bool negative = std::int64_t(high) < 0;
  if (negative) {  // nearer to the next quarter: n + 1, and the fraction less 1
    n += 1;
    high = ~high, low = ~low;  // the negative, up to 2^-128
  }
  // The fraction is the sum of three, each exact.
  double first = double(std::int64_t(high >> 11)) * 0x1p-53;
  double second = double(std::int64_t((high & 2047) << 42 | low >> 22)) * 0x1p-106;
  double third = double(std::int64_t(low & ((1 << 22) - 1))) * 0x1p-128;
  double fraction = first + second;
  double rest = ((first - fraction) + second) + third;
  double r = fraction * QUARTER.high;
  double r_rest = fma(fraction, QUARTER.low, fma(fraction, QUARTER.high, -r));
  r_rest = fma(rest, QUARTER.high, r_rest);
  if (negative) return {n, -r, -r_rest};
  return {n, r, r_rest};
}

/// For 0 <= size < infinity.
static ReducedAngle reduced(double size) {
  if (size <= 0.7853981633974483) return {0, size, 0.0};
  return reduced_by_bits(size);
}

/// sin(r + rest) for |r| <= pi/4: the series to r^17; the next term is below 2^-62 r.
static double near_sine(double r, double rest) {
  double z = r * r;
  double z2 = z * z;
  double low = fma(z2, fma(z, -1.0 / 39916800, 1.0 / 362880), fma(z, -1.0 / 5040, 1.0 / 120));
  double high = fma(z, -1.0 / 1307674368000, 1.0 / 6227020800);
  high = fma(z2, 1.0 / 355687428096000, high);
  double sum = fma(z2 * z2, high, low);
  // r - r^3 / 6, with what each step loses.
  double cube = r * z;
  double cube_rest = fma(r, z, -cube) + r * fma(r, r, -z);
  double sixth = cube * MINUS_SIXTH.high;
  double sixth_rest = fma(cube, MINUS_SIXTH.high, -sixth);
  sixth_rest = fma(cube_rest, MINUS_SIXTH.high, fma(cube, MINUS_SIXTH.low, sixth_rest));
  double main = r + sixth;
  double lost = ((r - main) + sixth) + (sixth_rest + fma(-0.5 * z, rest, rest));
  return main + fma(r * z2, sum, lost);
}

/// cos(r + rest) for |r| <= pi/4: the series to r^16; the next term is below 2^-58.
static double near_cosine(double r, double rest) {
  double z = r * r;
  double z_rest = fma(r, r, -z);
  double z2 = z * z;
  double low = fma(z2, fma(z, -1.0 / 3628800, 1.0 / 40320), fma(z, -1.0 / 720, 1.0 / 24));
  double high = fma(z2, 1.0 / 20922789888000, fma(z, -1.0 / 87178291200, 1.0 / 479001600));
  double sum = fma(z2 * z2, high, low);
  double half = 0.5 * z;
  double main = 1.0 - half;
  return main + (((1.0 - main) - half) + fma(z2, sum, fma(-0.5, z_rest, -r * rest)));
}

/// The sine of any angle; NaN if it is infinite.
double sine(double x) {
  double size = absolute(x);
  if (!(size < INF)) return NOT_A_NUMBER;
  auto [n, r, rest] = reduced(size);
  double value = n & 1 ? near_cosine(r, rest) : near_sine(r, rest);
  return std::copysign(1.0, x) * (n & 2 ? -value : value);
}

/// The cosine of any angle; NaN if it is infinite.
double cosine(double x) {
  double size = absolute(x);
  if (!(size < INF)) return NOT_A_NUMBER;
  auto [n, r, rest] = reduced(size);
  double value = n & 1 ? near_sine(r, rest) : near_cosine(r, rest);
  return (n + 1) & 2 ? -value : value;
}

}  // namespace kb
