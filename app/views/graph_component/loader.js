// Hands the drawing functions, with vis-network inside them, to whoever waits for them.
export default function mountLibrary() {
  openRegistry(BUILD).provideLibrary({ showPanel });
}
