// What the check found, with both places.
function findingsPanel(section, launch, page) {
  const checked = launch.options.check !== "off";
  if (!checked && !launch.findings.length && !launch.error) return;
  section.append(make("h2", { textContent: "Findings" }));
  if (launch.error) section.append(make("p", { className: "bad", style: "white-space: pre-wrap", textContent: launch.error }));
  if (!launch.findings.length) {
    if (checked) section.append(make("p", { className: "good", textContent: `none (check ${launch.options.check}, policy ${launch.options.policy})` }));
    return;
  }
  for (const finding of launch.findings) {
    const item = make("article", { className: "finding" });
    const times = finding.count > 1 ? ` (found ${format(finding.count)} times)` : "";
    item.append(make("p", {}, make("b", { className: "bad", textContent: finding.title }), `: ${finding.statement}${times}`));
    if (finding.range) item.append(make("p", { textContent: finding.range }));
    for (const [label, place] of [["first", finding.first], ["second", finding.second]]) {
      if (!place) continue;
      const thread = place.thread === null ? "" : `, thread ${place.thread}`;
      const where = `${place.op} on pipe ${place.pipe} of ${coreLabel(place.block, place.core)}${thread}, execution ${format(place.execution)}`;
      item.append(make("button", { type: "button", className: "place", onclick: () => page.select(place.line) },
        `${finding.first && finding.second ? label + ": " : ""}${place.access} in `, make("b", { textContent: `line ${place.line}` }), `, ${where}`,
        make("code", { textContent: page.text(place.line) })));
    }
    if (finding.advice) item.append(make("p", { className: "faint", textContent: `instead: ${finding.advice}` }));
    section.append(item);
  }
}
