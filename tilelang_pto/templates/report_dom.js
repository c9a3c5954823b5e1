// Small helpers: elements, numbers, colours, the tooltip.
const byId = (id) => document.getElementById(id);

// An element; text is never taken as HTML.
function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "style" || name.startsWith("aria-") || name.startsWith("data-")) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const plural = (count, one, many = one + "s") => `${format(count)} ${count === 1 ? one : many}`;

function format(value) {
  const digits = Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function scaled(value, factor, units) {
  let number = 0;
  while (Math.abs(value) >= factor && number + 1 < units.length) {
    value /= factor;
    number += 1;
  }
  return `${Number(value.toPrecision(Math.abs(value) < 999.5 ? 3 : 4))} ${units[number]}`;
}

const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const rate = (value, unit) => scaled(value, 1000, ["", "k", "M", "G", "T", "P"].map((prefix) => `${prefix}${unit}/s`));
const microseconds = (value) => (value < 1e6 ? scaled(value, 1000, ["µs", "ms"]) : `${Number((value / 1e6).toPrecision(3))} s`);
const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "–");

function colour(name) {
  const style = getComputedStyle(document.documentElement);
  return style.getPropertyValue(name).trim() || style.getPropertyValue("--pipe-other").trim();
}

function coreLabel(block, core) {
  return core ? `block ${block} ${core}` : `block ${block}`;
}

function showTip(event, text) {
  const tip = byId("tip");
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

// A canvas context in CSS pixels, sharp on any screen.
function contextOf(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, "DejaVu Sans", sans-serif';
  context.textBaseline = "middle";
  return context;
}
