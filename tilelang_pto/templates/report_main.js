// The page: which launch is shown, which line is selected.
class Page {
  constructor(data) {
    this.data = data;
    this.line = 0;
    this.panels = [];
    const findings = data.launches.reduce((sum, launch) => sum + launch.findings.length, 0);
    byId("totals").textContent = `${plural(data.launches.length, "launch", "launches")}, ${plural(findings, "finding")}`;
    this.buttons = data.launches.map((launch, number) => {
      const time = launch.timing ? `, ${microseconds(launch.timing.microseconds)}` : "";
      const label = `${number + 1}. ${launch.kernel}, ${plural(launch.grid, "block")}${time}`;
      const count = launch.findings.length + (launch.error ? 1 : 0);
      const badge = count ? make("span", { className: "badge", textContent: count, title: plural(count, "finding") }) : null;
      return make("button", { type: "button", onclick: () => this.show(number) }, label, badge ? " " : null, badge);
    });
    if (this.buttons.length > 1) byId("launches").append(...this.buttons);
    addEventListener("resize", () => this.redraw());
    const worst = data.launches.findIndex((launch) => launch.findings.length || launch.error);
    if (data.launches.length) this.show(Math.max(worst, 0));
    else byId("overview").append(make("p", { className: "empty", textContent: "No kernel was launched." }));
  }

  show(number) {
    const launch = this.data.launches[number];
    const source = this.data.sources[launch.source];
    this.buttons.forEach((button, index) => button.setAttribute("aria-current", index === number));
    for (const id of ["overview", "findings", "timeline", "memory", "source"]) byId(id).replaceChildren();
    this.lines = source.lines;
    this.line = 0;
    this.panels = [];
    overviewPanel(byId("overview"), launch, this);
    findingsPanel(byId("findings"), launch, this);
    sourcePanel(byId("source"), launch, this);
    if (!launch.timing) return;
    const view = new View(launch.timing.cycles, () => this.redraw());
    if (launch.timeline && launch.timeline.lanes.length) this.panels.push(new TimelinePanel(byId("timeline"), launch, view, this));
    if (launch.memory && launch.memory.length) this.panels.push(new MemoryPanel(byId("memory"), launch, view, this));
  }

  text(line) {
    return (this.lines[line - 1] || "").trim();
  }

  select(line, scroll = true) {
    this.line = line;
    for (const row of document.querySelectorAll("#source tr.selected")) row.classList.remove("selected");
    const row = byId(`line-${line}`);
    if (row) {
      row.classList.add("selected");
      if (scroll) row.scrollIntoView({ block: "center" });
    }
    this.redraw();
  }

  redraw() {
    for (const panel of this.panels) panel.draw();
  }
}

const page = new Page(JSON.parse(byId("data").textContent));
const setTheme = (dark) => {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  page.redraw();
};
const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", (event) => setTheme(event.matches));
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
setTheme(dark.matches);
