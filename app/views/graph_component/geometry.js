// Where edges run: the same curves that vis-network draws for "curvedCW" and "curvedCCW", from centre to centre.
function endsOf(structure, at) {
  const from = structure.from[at], to = structure.to[at];
  return [{ x: structure.x[from], y: structure.y[from] }, { x: structure.x[to], y: structure.y[to] }];
}

function controlPoint(structure, at) {
  const [from, to] = endsOf(structure, at);
  const bow = structure.curve[at];
  if (bow === 0) return { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  const reach = (0.5 + 0.5 * Math.abs(bow)) * Math.hypot(to.x - from.x, to.y - from.y);
  const angle = (0.5 + 0.5 * bow) * Math.PI - Math.atan2(to.y - from.y, to.x - from.x);
  return { x: from.x + reach * Math.sin(angle), y: from.y + reach * Math.cos(angle) };
}

function isLoop(structure, at) {
  return structure.from[at] === structure.to[at];
}

// A self loop is a circle around a point on the node's border; several stand around the node.
function loopCircle(structure, at) {
  const node = structure.from[at], size = structure.size[node];
  const angle = Math.PI / 4 + (structure.curve[at] * Math.PI) / 3;
  const [x, y] = [structure.x[node] + size * Math.cos(angle), structure.y[node] - size * Math.sin(angle)];
  return { x, y, radius: size * 0.9 + 3, angle };
}

function edgeMiddle(structure, at) {
  const [from, to] = endsOf(structure, at);
  if (isLoop(structure, at)) {
    const { x, y, radius, angle } = loopCircle(structure, at);
    return { x: x + radius * Math.cos(angle), y: y - radius * Math.sin(angle) };
  }
  const via = controlPoint(structure, at);
  return { x: (from.x + 2 * via.x + to.x) / 4, y: (from.y + 2 * via.y + to.y) / 4 };
}

function traceEdge(ctx, structure, at) {
  const [from, to] = endsOf(structure, at);
  if (isLoop(structure, at)) {
    const { x, y, radius } = loopCircle(structure, at);
    ctx.moveTo(x + radius, y);
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const via = controlPoint(structure, at);
  ctx.moveTo(from.x, from.y);
  ctx.quadraticCurveTo(via.x, via.y, to.x, to.y);
}

// The positions as they came, drawn out in one direction where the frame has room: never closer, never reordered.
const MOST_STRETCH = 2.2;

function arranged(source, frame) {
  const { left, right, top, bottom } = extent(source);
  const wide = (frame.clientWidth - sides(source)) / (right - left), tall = (frame.clientHeight - 64) / (bottom - top);
  const room = Math.min(wide, tall, 1.5);
  const stretch = (free) => Math.min(Math.max(Math.min(free, 1.5) / room, 1), MOST_STRETCH);
  const [across, down] = [stretch(wide), stretch(tall)];
  return { ...source, x: source.x.map((x) => x * across), y: source.y.map((y) => y * down) };
}

// Pixels kept free beside the picture; the names of lanes stand on the left.
const SIDE = 40, LANE_NAMES = 150;

function sides(structure) {
  return SIDE + (structure.aside.length ? LANE_NAMES : SIDE);
}

// Scale at which everything is in view.
function fittingScale(panel) {
  const [width, height] = [panel.frame.clientWidth, panel.frame.clientHeight];
  const { left, right, top, bottom } = extent(panel.structure);
  return Math.max(0.02, Math.min((width - sides(panel.structure)) / (right - left), (height - 64) / (bottom - top), 1.5));
}

function extent(structure) {
  const { x, y, size } = structure;
  const low = (values) => values.reduce((least, value, at) => Math.min(least, value - size[at]), Infinity);
  const high = (values) => values.reduce((most, value, at) => Math.max(most, value + size[at]), -Infinity);
  return { left: low(x), right: high(x), top: low(y), bottom: high(y) };
}
