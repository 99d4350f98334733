// The legend shows only what occurs in the picture, drawn with the picture's own shapes and inks.
function drawLegend(panel) {
  const { structure, theme, scales } = panel;
  const kinds = new Set(structure.kind);
  const numbers = new Set(panel.edgeNumbers);
  const zero = (structure.palette.light.firm.length - 2) / 2;
  const occurs = {
    empty: panel.nodeNumbers.includes(structure.palette.value.length), thin: structure.thin.includes(1),
    path: panel.paths[0]?.edges.length > 0, path2: panel.paths[1]?.edges.length > 0, chain: panel.chains.length > 0,
    found: panel.found.length > 0, undefined: numbers.has(2 * zero + 1), zero: numbers.has(zero),
    negative: panel.edgeNumbers.some((number) => number < zero),
    positive: panel.edgeNumbers.some((number) => number > zero && number <= 2 * zero),
  };
  const items = structure.legend.filter(([symbol]) => occurs[symbol] ?? kinds.has(symbol));
  const named = { path: panel.paths[0]?.name, path2: panel.paths[1]?.name };
  const parts = items.map(([symbol, meaning]) => legendItem(symbolPicture(structure, theme, symbol), named[symbol] || meaning));
  const inks = structure.palette[theme.name].firm.slice(0, -1);
  parts.push(scaleItem(scales.valueName, scales.value[0], scales.value[1], structure.palette.value, theme));
  parts.push(scaleItem(scales.creditName, -scales.credit, scales.credit, inks, theme));
  panel.legend.replaceChildren(...parts);
}

function legendItem(picture, meaning) {
  const item = document.createElement("span");
  const text = document.createElement("span");
  text.textContent = meaning;
  item.append(picture, text);
  return item;
}

function scaleItem(name, low, high, colours, theme) {
  const [bar, ink] = smallCanvas(84, 10);
  const gradient = ink.createLinearGradient(0, 0, 84, 0);
  colours.forEach((colour, at) => gradient.addColorStop(at / (colours.length - 1), colour));
  ink.fillStyle = gradient;
  ink.fillRect(0, 0, 84, 10);
  ink.strokeStyle = theme.outline;
  ink.strokeRect(0.5, 0.5, 83, 9);
  const item = document.createElement("span");
  item.className = "graft-scale";
  item.append(`${name} ${shortNumber(low)} `, bar, ` ${shortNumber(high)}`);
  return item;
}

function shortNumber(value) {
  return Number(value.toPrecision(2)).toString().replace("-", "−");
}

function smallCanvas(width, height) {
  const canvas = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const ink = canvas.getContext("2d");
  ink.scale(ratio, ratio);
  return [canvas, ink];
}

function symbolPicture(structure, theme, symbol) {
  const palette = structure.palette[theme.name];
  const zero = (palette.firm.length - 2) / 2;
  const strokes = {
    positive: [palette.firm[2 * zero], []], negative: [palette.firm[0], NEGATIVE_DASH], zero: [palette.firm[zero], []],
    undefined: [palette.firm[zero], UNDEFINED_DASH], thin: [palette.thin[2 * zero], []],
    path: [theme.band, []], path2: [theme.band2, BANDS[1].dash], chain: [theme.grey, []],
  };
  if (!strokes[symbol]) return shapePicture(structure, theme, symbol);
  const [canvas, ink] = linePicture(strokes[symbol], { thin: 1.2, path: 9, path2: 6, chain: 1.6 }[symbol] ?? 2.6);
  if (symbol === "chain") {
    ink.fillStyle = theme.grey;
    [10, 15, 20].forEach((x) => { ink.beginPath(); ink.arc(x, 6, 2.2, 0, 2 * Math.PI); ink.fill(); });
  }
  return canvas;
}

function linePicture([colour, dash], width) {
  const [canvas, ink] = smallCanvas(30, 12);
  ink.strokeStyle = colour;
  ink.lineWidth = width;
  ink.setLineDash(dash);
  ink.beginPath();
  ink.moveTo(1, 6);
  ink.lineTo(29, 6);
  ink.stroke();
  return [canvas, ink];
}

function shapePicture(structure, theme, symbol) {
  const [canvas, ink] = smallCanvas(16, 16);
  const fills = structure.palette.value;
  const middle = fills[fills.length >> 1];
  const fill = { success: fills[fills.length - 1], failure: fills[0], ordinary: middle, start: middle }[symbol];
  ink.fillStyle = fill ?? theme.page;
  ink.strokeStyle = symbol === "found" ? theme.text : fill ? theme.outline : theme.grey;
  ink.lineWidth = fill ? 1 : 1.6;
  ink.setLineDash(symbol === "found" ? [4, 2.5] : []);
  ink.beginPath();
  tracePath(ink, symbol);
  ink.closePath();
  ink.fill();
  ink.stroke();
  if (symbol === "empty") {
    ink.clip();
    ink.beginPath();
    [-4, 0, 4].forEach((shift) => { ink.moveTo(2 + shift, 14); ink.lineTo(14 + shift, 2); });
    ink.stroke();
  }
  return canvas;
}

function tracePath(ink, symbol) {
  const polygon = (points) => points.forEach(([x, y], at) => (at ? ink.lineTo(x, y) : ink.moveTo(x, y)));
  const star = Array.from({ length: 10 }, (_, at) => {
    const radius = at % 2 ? 3 : 7.3, angle = (at * Math.PI) / 5 - Math.PI / 2;
    return [8 + radius * Math.cos(angle), 8.6 + radius * Math.sin(angle)];
  });
  const shapes = {
    start: [[14, 8], [3, 2], [3, 14]], root: [[14, 8], [3, 2], [3, 14]], failure: [[8, 1], [15, 8], [8, 15], [1, 8]],
    unknown: [[2.5, 2.5], [13.5, 2.5], [13.5, 13.5], [2.5, 13.5]], success: star,
  };
  if (shapes[symbol]) polygon(shapes[symbol]);
  else ink.arc(8, 8, 6, 0, 2 * Math.PI);
}
