// Labels keep their size on screen and are drawn where there is room, the important ones first; whatever finds no
// room appears on zooming in. Also the marks that vis-network has no shape for.
const LABEL_SIZE = 12;
const CELL = 48;

function drawOverlay(panel, ctx) {
  const scale = panel.network.getScale();
  hatchEmptyNodes(panel, ctx, scale);
  ringSelected(panel, ctx, scale);
  drawLabels(panel, ctx, scale);
}

function fillPage(panel, ctx) {
  ctx.save();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = panel.theme.page;
  ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  ctx.restore();
}

function drawUnderlay(panel, ctx) {
  fillPage(panel, ctx);
  if (panel.path.length === 0) return;
  ctx.save();
  ctx.strokeStyle = panel.theme.band;
  ctx.lineWidth = 13 / panel.network.getScale();
  ctx.lineCap = "round";
  ctx.lineJoin = "round";
  ctx.beginPath();   // one path, one stroke: where the rollout passes twice the band does not darken
  panel.path.forEach((at) => traceEdge(ctx, panel.structure, at));
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

function ringSelected(panel, ctx, scale) {
  const { structure, theme, current } = panel;
  if (current?.kind !== "node") return;
  const at = panel.rowOfNode.get(current.id);
  ctx.save();
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 2.5 / scale;
  ctx.beginPath();
  ctx.arc(structure.x[at], structure.y[at], structure.size[at] * 1.25 + 4 / scale, 0, 2 * Math.PI);
  ctx.stroke();
  ctx.restore();
}

function drawLabels(panel, ctx, scale) {
  const { structure, theme } = panel;
  const width = ctx.canvas.clientWidth, height = ctx.canvas.clientHeight;
  const origin = panel.network.canvasToDOM({ x: 0, y: 0 });
  const room = openRoom();
  const visible = [];
  structure.node.forEach((_, at) => {
    const x = origin.x + structure.x[at] * scale, y = origin.y + structure.y[at] * scale, r = structure.size[at] * scale;
    if (x < -80 || y < -20 || x > width + 80 || y > height + 20) return;
    visible[at] = { x, y, r };
    takeRoom(room, { left: x - r, right: x + r, top: y - r, bottom: y + r });
  });
  ctx.save();
  ctx.setTransform(window.devicePixelRatio || 1, 0, 0, window.devicePixelRatio || 1, 0, 0);
  ctx.font = `${LABEL_SIZE}px ${theme.font}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const chosen = chosenEdges(panel);
  const forced = panel.current?.kind === "node" ? [panel.rowOfNode.get(panel.current.id)] : [];
  forced.forEach((at) => visible[at] && labelNode(panel, ctx, room, at, visible[at], true));
  chosen.forEach((at) => labelEdge(panel, ctx, room, at, scale, origin, true));
  panel.byImportance.forEach((at) => {
    if (visible[at] && !forced.includes(at)) labelNode(panel, ctx, room, at, visible[at], false);
  });
  if (scale > 0.9) {
    panel.edgesByCount.forEach((at) => {
      if (!chosen.includes(at)) labelEdge(panel, ctx, room, at, scale, origin, false);
    });
  }
  ctx.restore();
}

function labelNode(panel, ctx, room, at, spot, must) {
  const text = panel.structure.label[at];
  if (!text) return;
  const half = measure(panel, ctx, text) / 2 + 2, tall = LABEL_SIZE / 2 + 2;
  for (const y of [spot.y + spot.r + tall + 1, spot.y - spot.r - tall - 1]) {
    const box = { left: spot.x - half, right: spot.x + half, top: y - tall, bottom: y + tall };
    if (must || hasRoom(room, box)) {
      takeRoom(room, box);
      writeWithHalo(ctx, text, spot.x, y, panel.theme.text, panel.theme.page, must);
      return;
    }
  }
}

function labelEdge(panel, ctx, room, at, scale, origin, must) {
  const text = panel.structure.edgeLabel[at];
  if (!text) return;
  const middle = edgeMiddle(panel.structure, at);
  const x = origin.x + middle.x * scale, y = origin.y + middle.y * scale - LABEL_SIZE / 2 - 2;   // above the line
  const half = measure(panel, ctx, text) / 2 + 2, tall = LABEL_SIZE / 2 + 2;
  const [from, to] = endsOf(panel.structure, at);
  const length = scale * Math.hypot(from.x - to.x, from.y - to.y);
  if (!must && length < 2 * half + 30) return;
  const box = { left: x - half, right: x + half, top: y - tall, bottom: y + tall };
  if (!hasRoom(room, box) && !(must && panel.current.kind === "edge")) return;
  takeRoom(room, box);
  writeWithHalo(ctx, text, x, y, panel.theme.text, panel.theme.page, must, true);
}

function chosenEdges(panel) {
  if (panel.current?.kind === "edge") return [panel.rowOfEdge.get(panel.current.id)];
  if (panel.current?.kind !== "node") return [];
  return panel.leaving[panel.rowOfNode.get(panel.current.id)];
}

function writeWithHalo(ctx, text, x, y, ink, page, strong, soft = false) {
  const font = ctx.font;
  if (strong) ctx.font = "600 " + font;
  ctx.globalAlpha = soft && !strong ? 0.78 : 1;
  ctx.strokeStyle = page;
  ctx.lineWidth = 4;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = ink;
  ctx.fillText(text, x, y);
  ctx.globalAlpha = 1;
  ctx.font = font;
}

function measure(panel, ctx, text) {
  const known = panel.widths.get(text) ?? ctx.measureText(text).width;
  panel.widths.set(text, known);
  return known;
}

function openRoom() {
  return new Map();
}

function cellsOf(box) {
  const cells = [];
  for (let column = Math.floor(box.left / CELL); column <= Math.floor(box.right / CELL); column += 1)
    for (let row = Math.floor(box.top / CELL); row <= Math.floor(box.bottom / CELL); row += 1) cells.push(column * 10007 + row);
  return cells;
}

function hasRoom(room, box) {
  return cellsOf(box).every((cell) => (room.get(cell) ?? []).every((other) =>
    other.right <= box.left || other.left >= box.right || other.bottom <= box.top || other.top >= box.bottom));
}

function takeRoom(room, box) {
  cellsOf(box).forEach((cell) => { if (room.has(cell)) room.get(cell).push(box); else room.set(cell, [box]); });
}
