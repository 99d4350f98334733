// Marks that vis-network has no shape for: bands along paths, rings, hatching, the dots of a chain.
function drawOverlay(panel, ctx) {
  const scale = panel.network.getScale();
  hatchEmptyNodes(panel, ctx, scale);
  dotChains(panel, ctx, scale);
  ringFound(panel, ctx, scale);
  ringSelected(panel, ctx, scale);
  drawLabels(panel, ctx, scale);
  shareView(panel);
}

function drawUnderlay(panel, ctx) {
  ctx.save();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = panel.theme.page;
  ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  ctx.restore();
  panel.paths.forEach((path, rank) => drawBand(panel, ctx, path.edges, BANDS[rank]));
}

// The first path is a plain band, the second a broken and narrower one, so that both show where they run together.
const BANDS = [{ ink: "band", width: 13, dash: [] }, { ink: "band2", width: 7, dash: [9, 6] }];

function drawBand(panel, ctx, edges, { ink, width, dash }) {
  const scale = panel.network.getScale();
  ctx.save();
  ctx.strokeStyle = panel.theme[ink];
  ctx.lineWidth = width / scale;
  ctx.setLineDash(dash.map((part) => part / scale));
  ctx.lineCap = dash.length ? "butt" : "round";
  ctx.lineJoin = "round";
  ctx.beginPath();   // one path, one stroke: where the rollout passes twice the band does not darken
  edges.forEach((at) => traceEdge(ctx, panel.structure, at));
  ctx.stroke();
  ctx.restore();
}

function hatchEmptyNodes(panel, ctx, scale) {
  const { structure, theme } = panel;
  const empty = structure.palette.value.length;
  ctx.save();
  ctx.strokeStyle = theme.grey;
  ctx.lineWidth = Math.max(1, 0.8 / scale);
  structure.node.forEach((_, at) => {
    if (panel.nodeNumbers[at] !== empty || structure.kind[at] !== "ordinary") return;
    const x = structure.x[at], y = structure.y[at], r = structure.size[at];
    ctx.save();
    ctx.beginPath();
    ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.clip();
    ctx.beginPath();
    for (let shift = -r; shift <= r; shift += Math.max(r / 2, 3)) {
      ctx.moveTo(x + shift - r, y + r);
      ctx.lineTo(x + shift + r, y - r);
    }
    ctx.stroke();
    ctx.restore();
  });
  ctx.restore();
}

// Three dots on a line that stands for several steps.
function dotChains(panel, ctx, scale) {
  const { structure, theme } = panel;
  ctx.save();
  panel.chains.forEach((at) => {
    const middle = edgeMiddle(structure, at);
    const [from, to] = endsOf(structure, at);
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const along = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
    const radius = Math.max(2.4 / scale, structure.width[at] * 0.8), gap = Math.min(3 * radius, length / 6);
    ctx.fillStyle = inkOf(structure, theme, at, panel.edgeNumbers[at]);
    ctx.strokeStyle = theme.page;
    ctx.lineWidth = 1.5 / scale;
    [-gap, 0, gap].forEach((shift) => {
      ctx.beginPath();
      ctx.arc(middle.x + shift * along.x, middle.y + shift * along.y, radius, 0, 2 * Math.PI);
      ctx.stroke();
      ctx.fill();
    });
  });
  ctx.restore();
}

function ringFound(panel, ctx, scale) {
  ctx.save();
  ctx.strokeStyle = panel.theme.text;
  ctx.setLineDash([4 / scale, 2.5 / scale]);
  panel.found.forEach((at) => ring(panel, ctx, at, scale, 1.6, 5));
  ctx.restore();
}

// The selection, and fainter the other places where the same moment or step is drawn.
function ringSelected(panel, ctx, scale) {
  ctx.save();
  ctx.strokeStyle = panel.theme.accent;
  if (panel.current?.kind === "node") ring(panel, ctx, panel.rowOfNode.get(panel.current.id), scale, 2.5, 4);
  const rows = panel.twins.map((id) => (panel.current?.kind === "edge" ? panel.rowOfEdge : panel.rowOfNode).get(id));
  if (panel.current?.kind === "node") rows.forEach((at) => at !== undefined && ring(panel, ctx, at, scale, 1.5, 3));
  if (panel.current?.kind === "edge") {
    ctx.globalAlpha = 0.45;
    ctx.lineWidth = 7 / scale;
    ctx.beginPath();
    rows.forEach((at) => at !== undefined && traceEdge(ctx, panel.structure, at));
    ctx.stroke();
  }
  ctx.restore();
}

function ring(panel, ctx, at, scale, width, away) {
  const { structure } = panel;
  ctx.lineWidth = width / scale;
  ctx.beginPath();
  ctx.arc(structure.x[at], structure.y[at], structure.size[at] * 1.2 + away / scale, 0, 2 * Math.PI);
  ctx.stroke();
}
