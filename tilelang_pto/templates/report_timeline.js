// One row per core and pipe. A lane's events are flat: start, end, line, index of the operation, 1 for a wait.
const ROW = 18;
const FIELDS = 5;

class TimelinePanel {
  constructor(section, launch, view, page) {
    this.launch = launch;
    this.view = view;
    this.page = page;
    this.canvas = make("canvas", { "aria-label": "timeline of the pipes; + and - zoom, arrow keys move, 0 shows all" });
    this.spacer = make("div", {}, this.canvas);
    this.scroll = make("div", { className: "scroll" }, this.spacer);
    this.blocks = make("select", { title: "which blocks" });
    const blocks = [...new Set(launch.timeline.lanes.map((lane) => lane.block))];
    this.blocks.append(make("option", { value: "", textContent: `all ${plural(blocks.length, "block")}` }));
    for (const block of blocks) this.blocks.append(make("option", { value: block, textContent: `block ${block}` }));
    this.blocks.addEventListener("change", () => this.choose());
    const pipes = [...new Set(launch.timeline.lanes.map((lane) => lane.pipe))];
    const legend = make("div", { className: "legend" });
    for (const pipe of pipes) legend.append(make("span", { textContent: pipe, style: `--c: var(--pipe-${pipe}, var(--pipe-other))` }));
    legend.append(make("span", { textContent: "waiting", style: "--c: var(--line)" }));
    section.append(make("h2", { textContent: "Timeline" }),
      make("div", { className: "tools" }, this.blocks, ...zoomTools(view), make("span", { className: "faint", textContent: "wheel zooms (with Ctrl where rows scroll), drag moves, click shows the line" }), legend),
      this.scroll);
    this.section = section;
    this.scroll.addEventListener("scroll", () => this.draw());
    const scrolls = () => this.spacer.clientHeight > this.scroll.clientHeight + 1;
    view.attach(this.canvas, (event) => event.ctrlKey || event.metaKey || !scrolls(), (x, y) => this.tip(x, y), (x, y) => this.click(x, y));
    this.choose();
  }

  choose() {
    const block = this.blocks.value;
    this.lanes = this.launch.timeline.lanes.filter((lane) => block === "" || lane.block === Number(block));
    this.spacer.style.height = `${AXIS + this.lanes.length * ROW}px`;
    this.draw();
  }

  draw() {
    const width = this.scroll.clientWidth;
    const height = Math.min(AXIS + this.lanes.length * ROW, 428);
    if (!width) return;
    const context = contextOf(this.canvas, width, height);
    const { view } = this;
    view.drawAxis(context, width, height, this.launch.timing.clock_ghz);
    const top = this.scroll.scrollTop;
    const first = Math.floor(top / ROW);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, width, height - AXIS);
    context.clip();
    for (let row = first; row < this.lanes.length; row += 1) {
      const y = AXIS + row * ROW - top;
      if (y > height) break;
      this.drawLane(context, this.lanes[row], y, width, row === first || this.starts(row));
    }
    context.restore();
    this.section.dataset.from = view.from;
    this.section.dataset.to = view.to;
  }

  // Whether a row is the first one of its core.
  starts(row) {
    const [lane, before] = [this.lanes[row], this.lanes[row - 1]];
    return !before || before.block !== lane.block || before.core !== lane.core;
  }

  drawLane(context, lane, y, width, named) {
    const { view } = this;
    const { events } = lane;
    if (named) {
      context.strokeStyle = colour("--line");
      context.beginPath();
      context.moveTo(0, Math.round(y) + 0.5);
      context.lineTo(width, Math.round(y) + 0.5);
      context.stroke();
      context.fillStyle = colour("--ink");
      context.fillText(coreLabel(lane.block, lane.core), 6, y + ROW / 2);
    }
    context.fillStyle = colour("--faint");
    context.fillText(lane.label, LABELS - 50, y + ROW / 2);
    const [running, waiting, edge] = [colour(`--pipe-${lane.pipe}`), colour("--line"), colour("--ink")];
    let drawn = -1; // what is narrower than a pixel is drawn once a pixel
    for (let at = this.firstAfter(events, view.from) * FIELDS; at < events.length && events[at] < view.to; at += FIELDS) {
      const left = Math.max(view.x(events[at], width), LABELS);
      const right = Math.min(view.x(events[at + 1], width), width);
      const selected = events[at + 2] === this.page.line;
      if (right - left < 1 && Math.floor(left) === drawn && !selected) continue;
      drawn = Math.floor(left);
      context.fillStyle = events[at + 4] ? waiting : running;
      const inset = events[at + 4] ? 6 : 2;
      context.fillRect(left, y + inset, Math.max(right - left, 1), ROW - 2 * inset);
      if (selected) {
        context.strokeStyle = edge;
        context.strokeRect(left + 0.5, y + inset + 0.5, Math.max(right - left - 1, 0.5), ROW - 2 * inset - 1);
      }
      const name = this.launch.timeline.ops[events[at + 3]];
      if (!events[at + 4] && right - left > 30 && context.measureText(name).width < right - left - 6) {
        context.fillStyle = "#fff";
        context.fillText(name, left + 3, y + ROW / 2);
      }
    }
  }

  // Number of the first event that ends after a cycle.
  firstAfter(events, cycle) {
    let [low, high] = [0, events.length / FIELDS];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (events[middle * FIELDS + 1] > cycle) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  at(x, y) {
    const lane = this.lanes[Math.floor((y - AXIS + this.scroll.scrollTop) / ROW)];
    if (!lane || y < AXIS || x < LABELS) return null;
    const slack = (this.view.to - this.view.from) / 400;
    const cycle = this.view.cycle(x, this.canvas.clientWidth);
    const at = this.firstAfter(lane.events, cycle - slack) * FIELDS;
    return at < lane.events.length && lane.events[at] <= cycle + slack ? { lane, event: lane.events.slice(at, at + FIELDS) } : null;
  }

  tip(x, y) {
    const found = this.at(x, y);
    if (!found) return "";
    const [start, end, line, op, wait] = found.event;
    const name = this.launch.timeline.ops[op];
    const place = `${coreLabel(found.lane.block, found.lane.core)}, pipe ${found.lane.pipe}`;
    const length = end - start;
    return `${wait ? "waits in " : ""}${name}, line ${line}\n${this.page.text(line)}\n${place}\n` +
      `cycles ${format(start)} to ${format(end)}: ${format(length)} (${microseconds(length / this.launch.timing.clock_ghz / 1000)})`;
  }

  click(x, y) {
    const found = this.at(x, y);
    if (found) this.page.select(found.event[2]);
  }
}
