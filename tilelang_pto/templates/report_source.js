// The text of the kernel with the cycles of each line.
function sourcePanel(section, launch, page) {
  const cycles = new Map();
  let total = 0;
  for (const item of launch.timing ? launch.timing.lines : []) {
    const row = cycles.get(item.line) || { cycles: 0, executions: 0, pipes: new Set() };
    row.cycles += item.cycles;
    row.executions = Math.max(row.executions, item.executions);
    row.pipes.add(item.pipe);
    cycles.set(item.line, row);
    total += item.cycles;
  }
  const found = new Set();
  for (const finding of launch.findings) for (const place of [finding.first, finding.second]) if (place) found.add(place.line);
  const hottest = [...cycles].sort((a, b) => b[1].cycles - a[1].cycles).slice(0, 6).filter(([, row]) => row.cycles > 0);
  const most = hottest.length ? hottest[0][1].cycles : 1;

  section.append(make("h2", { textContent: launch.file }));
  if (hottest.length) {
    const list = make("div", { className: "hot" }, make("span", { className: "faint", textContent: "busiest lines" }));
    for (const [line, row] of hottest) {
      list.append(make("button", { type: "button", textContent: `${line}: ${percent(row.cycles, total)}`, title: page.text(line), onclick: () => page.select(line) }));
    }
    section.append(list);
  }
  const body = make("tbody");
  page.lines.forEach((text, index) => {
    const line = index + 1;
    const row = cycles.get(line);
    const heat = row ? Math.sqrt(row.cycles / most) * 0.55 : 0;
    const title = row ? `${plural(row.executions, "execution")} on ${[...row.pipes].join(", ")}` : "";
    const cells = [make("td", { className: "number", textContent: line })];
    if (cycles.size) {
      cells.push(make("td", { className: "cycles", textContent: row && row.cycles ? format(Math.round(row.cycles)) : "", title }),
        make("td", { className: "share", textContent: row && row.cycles ? percent(row.cycles, total) : "", title }));
    }
    cells.push(make("td", { className: "code", textContent: text, style: heat ? `background: rgba(var(--heat), ${heat.toFixed(3)})` : "" }));
    const element = make("tr", { id: `line-${line}`, className: found.has(line) ? "found" : "", onclick: () => page.select(line, false) }, ...cells);
    body.append(element);
  });
  const table = make("table", { className: "code" });
  if (cycles.size) {
    const heads = ["", "cycles", "share", ""].map((textContent, index) => make("td", { className: index === 0 ? "number" : "cycles", textContent }));
    table.append(make("thead", {}, make("tr", {}, ...heads)));
  }
  table.append(body);
  section.append(make("div", { className: "rows" }, table));
}
