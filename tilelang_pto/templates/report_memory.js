// Which bytes of a memory are touched when. A map's extents are flat: begin, end, first cycle, last cycle, line, 1 for a write.
// Its views are the buffers that the text names, with their bytes.
const PARTS = 6;
const MAP_HEIGHT = 260;
const ROW_HEIGHT = 11; // of a name

class MemoryPanel {
  constructor(section, launch, view, page) {
    this.launch = launch;
    this.view = view;
    this.page = page;
    this.canvas = make("canvas", { "aria-label": "bytes of a memory over time" });
    this.choice = make("select", { title: "which memory" });
    launch.memory.forEach((map, number) => {
      this.choice.append(make("option", { value: number, textContent: `${map.memory} of ${coreLabel(map.block, map.core)}` }));
    });
    this.choice.addEventListener("change", () => this.draw());
    const legend = make("div", { className: "legend" },
      make("span", { textContent: "written", style: "--c: var(--write)" }), make("span", { textContent: "read", style: "--c: var(--read)" }));
    section.append(make("h2", { textContent: "Memory over time" }),
      make("div", { className: "tools" }, this.choice, make("span", { className: "faint", textContent: "the same time as above" }), legend), this.canvas);
    view.attach(this.canvas, () => true, (x, y) => this.tip(x, y), (x, y) => this.click(x, y));
    this.draw();
  }

  map() {
    return this.launch.memory[Number(this.choice.value)];
  }

  // Address of the upper edge of the map.
  top() {
    const { extents } = this.map();
    let end = 1;
    for (let at = 1; at < extents.length; at += PARTS) end = Math.max(end, extents[at]);
    for (const buffer of this.map().views) end = Math.max(end, buffer.end);
    return end;
  }

  y(address, top) {
    return MAP_HEIGHT - 4 - (address / top) * (MAP_HEIGHT - AXIS - 8);
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const context = contextOf(this.canvas, width, MAP_HEIGHT);
    const { view } = this;
    const { extents } = this.map();
    const top = this.top();
    view.drawAxis(context, width, MAP_HEIGHT, this.launch.timing.clock_ghz);
    context.fillStyle = colour("--faint");
    for (let part = 0; part <= 4; part += 1) {
      const y = this.y((top * part) / 4, top);
      context.fillText(bytes(Math.round((top * part) / 4)), LABELS - 70, Math.min(Math.max(y, AXIS + 8), MAP_HEIGHT - 8));
    }
    const [read, write, edge] = [colour("--read"), colour("--write"), colour("--ink")];
    context.globalAlpha = 0.6;
    for (let at = 0; at < extents.length; at += PARTS) {
      const [begin, end, first, last, line, writes] = extents.slice(at, at + PARTS);
      if (last < view.from || first > view.to) continue;
      const left = Math.max(view.x(first, width), LABELS);
      const right = Math.min(view.x(last, width), width);
      const [upper, lower] = [this.y(end, top), this.y(begin, top)];
      context.fillStyle = writes ? write : read;
      context.fillRect(left, upper, Math.max(right - left, 1), Math.max(lower - upper, 1));
      if (line === this.page.line) {
        context.strokeStyle = edge;
        context.strokeRect(left, upper, Math.max(right - left, 1), Math.max(lower - upper, 1));
      }
    }
    context.globalAlpha = 1;
    this.drawNames(context, width, top);
  }

  // A line where each buffer begins, and its name where there is room for it.
  drawNames(context, width, top) {
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--ink");
    context.textAlign = "right";
    for (const { name, begin, end } of this.map().views) {
      const [upper, lower] = [this.y(end, top), this.y(begin, top)];
      context.beginPath();
      context.moveTo(LABELS, lower);
      context.lineTo(width, lower);
      context.stroke();
      if (lower - upper >= ROW_HEIGHT) context.fillText(name, width - 4, (upper + lower) / 2 + 4);
    }
    context.textAlign = "left";
  }

  // The buffers that bytes lie in.
  names(begin, end) {
    return this.map().views.filter((buffer) => buffer.begin < end && begin < buffer.end).map((buffer) => buffer.name).join(", ");
  }

  at(x, y) {
    const { extents } = this.map();
    const cycle = this.view.cycle(x, this.canvas.clientWidth);
    const address = ((MAP_HEIGHT - 4 - y) / (MAP_HEIGHT - AXIS - 8)) * this.top();
    const slack = (this.view.to - this.view.from) / 400;
    if (x < LABELS) return null;
    for (let at = extents.length - PARTS; at >= 0; at -= PARTS) {
      const [begin, end, first, last] = extents.slice(at, at + 4);
      if (begin <= address && address < end && first - slack <= cycle && cycle <= last + slack) return extents.slice(at, at + PARTS);
    }
    return null;
  }

  tip(x, y) {
    const found = this.at(x, y);
    if (!found) return "";
    const [begin, end, first, last, line, writes] = found;
    const names = this.names(begin, end);
    return `line ${line} ${writes ? "writes" : "reads"} bytes ${begin} to ${end - 1}${names && ` (${names})`}\n${this.page.text(line)}\ncycles ${format(first)} to ${format(last)}`;
  }

  click(x, y) {
    const found = this.at(x, y);
    if (found) this.page.select(found[4]);
  }
}
