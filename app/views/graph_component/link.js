// Pictures with the same link show the same part at the same size, and the same choice: A beside B.
function peersOf(panel) {
  if (!panel.link) return [];
  return [...openRegistry(BUILD).panels].filter((other) =>
    other !== panel && other.link === panel.link && other.network && other.source.version === panel.source.version);
}

function viewOf(panel) {
  const position = panel.network.getViewPosition();
  return { scale: panel.network.getScale(), position };
}

// Called after each drawing, so that dragging, wheel and animation are all followed.
function shareView(panel) {
  if (!panel.link || !panel.fitted) return;
  const view = viewOf(panel);
  const told = [view.scale.toFixed(4), view.position.x.toFixed(1), view.position.y.toFixed(1)].join(" ");
  if (told === panel.toldView) return;
  panel.toldView = told;
  if (!panel.touched) return;   // what is only fitted to its frame is fitted in the other frame too
  peersOf(panel).forEach((other) => {
    if (other.toldView === told) return;
    Object.assign(other, { toldView: told, touched: true });
    other.network.moveTo({ ...view, animation: false });
  });
}

function shareSelection(panel, selection) {
  peersOf(panel).forEach((other) => select(other, selection, false));
}

function focusPeer(panel) {
  const [other] = peersOf(panel);
  other?.frame.querySelector(".vis-network").focus();
  return Boolean(other);
}
