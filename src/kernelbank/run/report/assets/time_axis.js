// The axis of charts over rows, or over time where the run has one. Times are in UTC, as the run reads
// times without a zone.

let timeline = { name: null, xs: [], range: [0, 1] };

const timelineLabel = () => (timeline.name === null ? "row" : `${timeline.name} (UTC)`);

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MONTH = 30.44 * DAY;
const MONDAY = 4 * DAY; // 1970 began on a Thursday

const TIME_STEPS = [
  ...[0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 4, 7, 14].map((count) => count * DAY),
  ...[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].map((count) => count * MONTH),
];

const MONTHS = [
  "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const twoDigits = (value) => String(value).padStart(2, "0");

const TIME_FORMATS = {
  second: (date) => `${TIME_FORMATS.minute(date)}:${twoDigits(date.getUTCSeconds())}`,
  minute: (date) => `${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`,
  day: (date) => `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`,
  month: (date) => `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`,
  year: (date) => String(date.getUTCFullYear()),
  whole: (date) => `${date.getUTCDate()} ${TIME_FORMATS.month(date)}, ${TIME_FORMATS.minute(date)}`,
};

// Beyond these seconds there are no dates.
const isDate = (time) => known(time) && Math.abs(time) < 8e12;
const formatTime = (format, time) =>
  (isDate(time) ? TIME_FORMATS[format](new Date(1000 * time)) : "");

// "3 Mar 2024, 14:00"
const timeText = (time) => formatTime("whole", time);

function timeTicks(low, high, step) {
  if (!isDate(low) || !isDate(high)) return [low, high];
  if (step >= MONTH) return monthTicks(low, high, Math.round(step / MONTH));
  const origin = step >= 7 * DAY ? MONDAY : 0;
  const first = Math.ceil((low - origin) / step);
  const count = Math.min(MAX_TICKS, Math.floor((high - origin) / step) - first + 1);
  if (!(count > 0)) return [low, high];
  return Array.from({ length: count }, (_, index) => origin + (first + index) * step);
}

function monthTicks(low, high, months) {
  const date = new Date(1000 * low);
  const from = 12 * date.getUTCFullYear() + date.getUTCMonth();
  const ticks = [];
  for (let at = Math.floor(from / months) * months; ticks.length < MAX_TICKS; at += months) {
    const tick = Date.UTC(Math.floor(at / 12), at % 12) / 1000;
    if (!(tick <= high)) break;
    if (tick >= low) ticks.push(tick);
  }
  return ticks.length ? ticks : [low, high];
}

// Days stand where they begin; if none begins on the axis, the first label has its day.
function timeLabels(ticks, step) {
  if (step >= 12 * MONTH) return ticks.map((tick) => formatTime("year", tick));
  if (step >= MONTH) return ticks.map((tick) => formatTime("month", tick));
  if (step >= DAY) return ticks.map((tick) => formatTime("day", tick));
  const clock = step < MINUTE ? "second" : "minute";
  const isMidnight = (tick) => tick % DAY === 0;
  const hasDay = ticks.some(isMidnight);
  return ticks.map((tick, at) => {
    const day = formatTime("day", tick);
    if (isMidnight(tick)) return day;
    const time = formatTime(clock, tick);
    return !hasDay && at === 0 ? `${day}, ${time}` : time;
  });
}

// An axis that is one of time while `isTime()`, else one of numbers.
const timeAxisWhile = (isTime) => ({
  incrs: (plot, at, low, high) => (isTime() ? TIME_STEPS : stepsFor(low, high)),
  splits: (plot, at, low, high, step) =>
    (isTime() ? timeTicks : ticksBetween)(low, high, step),
  values: (plot, values, at, space, step) => (isTime() ? timeLabels : tickLabels)(values, step),
});

const timelineAxis = timeAxisWhile(() => timeline.name !== null);

// The rows of a point and, where there is one, the time of the last.
function pointText({ starts, ends, timeline: line }, at, first = starts[at] + 1) {
  const rows = rowRange(first, ends[at]);
  return line.name === null ? rows : `${rows}, ${timeText(line.xs[at])}`;
}
