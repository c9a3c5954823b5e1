// The part of the time axis that timeline and memory map show, and moving it with mouse and keys.
const AXIS = 22;
const LABELS = 148;

class View {
  constructor(cycles, redraw) {
    this.cycles = Math.max(cycles, 1);
    this.redraw = redraw;
    this.fit();
  }

  fit() {
    this.set(0, this.cycles);
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, 4), this.cycles);
    this.from = Math.min(Math.max(from, 0), this.cycles - span);
    this.to = this.from + span;
    this.redraw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) {
    const step = (this.to - this.from) * share;
    this.set(this.from + step, this.to + step);
  }

  x(cycle, width) {
    return LABELS + ((cycle - this.from) / (this.to - this.from)) * (width - LABELS);
  }

  cycle(x, width) {
    return this.from + ((x - LABELS) / (width - LABELS)) * (this.to - this.from);
  }

  // Ticks at round numbers of cycles, with time.
  drawAxis(context, width, height, clock) {
    const raw = (this.to - this.from) / Math.max((width - LABELS) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    context.lineWidth = 1;
    for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) {
      const x = Math.round(this.x(tick, width)) + 0.5;
      context.strokeStyle = colour("--line");
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, height);
      context.stroke();
      context.fillStyle = colour("--faint");
      const label = `${Number(tick.toPrecision(6)).toLocaleString("en-US")}`;
      if (x + context.measureText(label).width + 4 < width) context.fillText(label, x + 3, AXIS / 2);
    }
    context.fillStyle = colour("--faint");
    context.fillText(`cycles (${microseconds((this.to - this.from) / clock / 1000)})`, 6, AXIS / 2);
  }

  // `zooms(event)` says whether the wheel zooms here; without, it scrolls.
  attach(canvas, zooms, hover, click) {
    let drag = null;
    canvas.tabIndex = 0;
    canvas.addEventListener("wheel", (event) => {
      if (!zooms(event)) return;
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), this.cycle(event.offsetX, canvas.clientWidth));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, from: this.from, to: this.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return showTip(event, hover(event.offsetX, event.offsetY));
      const shift = ((drag.x - event.offsetX) / (canvas.clientWidth - LABELS)) * (drag.to - drag.from);
      drag.moved = drag.moved || Math.abs(event.offsetX - drag.x) > 3;
      if (drag.moved) this.set(drag.from + shift, drag.to + shift);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) click(event.offsetX, event.offsetY);
      drag = null;
    });
    canvas.addEventListener("pointerleave", (event) => showTip(event, ""));
    canvas.addEventListener("dblclick", () => this.fit());
    canvas.addEventListener("keydown", (event) => {
      const action = {
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.fit(),
        ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
      }[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    });
  }
}

function zoomTools(view) {
  const tool = (label, title, action) => make("button", { type: "button", title, textContent: label, onclick: action });
  return [tool("+", "zoom in", () => view.zoom(0.5)), tool("−", "zoom out", () => view.zoom(2)), tool("fit", "show all", () => view.fit())];
}
