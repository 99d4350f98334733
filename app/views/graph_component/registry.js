// Meeting place of the three mounts (library, structures, pictures): they arrive in any order, each in a message
// of its own. One per page and per build, under a symbol, so that nothing global can be overwritten by name.
function openRegistry(build) {
  const key = Symbol.for("graft.graph." + build);
  if (!globalThis[key]) {
    const registry = { structures: new Map(), waiting: new Map(), panels: new Set() };
    registry.library = new Promise((resolve) => { registry.provideLibrary = resolve; });
    globalThis[key] = registry;
  }
  return globalThis[key];
}
