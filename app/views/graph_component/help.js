// What the keys do, shown on "?".
const KEYS = [
  ["→  ←", "along the highlighted rollout, or the busiest way"],
  ["↓  ↑", "to the next action taken from this moment"],
  ["n  p", "this moment in the next or previous rollout (also Page Down, Page Up)"],
  ["Home", "to the start"], ["x", "flip credit A and B"], ["/", "search"], ["Esc", "choose nothing"],
  ["+  −  0", "zoom in, out, show everything"], ["?", "this list"],
];

function fillHelp(box) {
  box.replaceChildren(...KEYS.flatMap(([keys, meaning]) => [keys, meaning].map((words, at) => {
    const part = document.createElement(at ? "dd" : "dt");
    part.textContent = words;
    return part;
  })));
}

function toggleHelp(panel, shown = panel.help.hidden) {
  panel.help.hidden = !shown;
  panel.root.querySelector('[data-do="help"]').setAttribute("aria-expanded", String(shown));
}
