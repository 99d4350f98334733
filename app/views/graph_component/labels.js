// Labels keep their size on screen and are drawn where there is room, the important ones first; whatever finds no
// room appears on zooming in.
const LABEL_SIZE = 12;
const CELL = 48;

function drawLabels(panel, ctx, scale) {
  const { structure, theme } = panel;
  const width = ctx.canvas.clientWidth, height = ctx.canvas.clientHeight;
  const origin = panel.network.canvasToDOM({ x: 0, y: 0 });
  const room = openRoom(width);
  panel.written = [];
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
  for (const { x, y } of labelPlaces(panel, room, at, spot, half, tall)) {
    const box = { left: x - half, right: x + half, top: y - tall, bottom: y + tall };
    if (must || hasRoom(room, box)) {
      takeRoom(room, box);
      panel.written.push({ text, ...box });
      writeWithHalo(ctx, text, x, y, panel.theme.text, panel.theme.page, must);
      return;
    }
  }
}

// Below the node, else above it; the name of a lane in front of its first node. Never cut off by the frame's sides.
function labelPlaces(panel, room, at, spot, half, tall) {
  const x = spot.x < 0 || spot.x > room.width ? spot.x : Math.min(Math.max(spot.x, half), Math.max(room.width - half, half));
  if (panel.aside.has(at)) return [{ x: Math.max(spot.x - spot.r - half - 4, half), y: spot.y }];
  return [{ x, y: spot.y + spot.r + tall + 1 }, { x, y: spot.y - spot.r - tall - 1 }];
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

function openRoom(width) {
  return Object.assign(new Map(), { width });
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
