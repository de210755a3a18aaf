// What the dashboard uses of Preact.

export type Child = unknown;
export function render(tree: Child, into: Element): void;
export class Component<Props = any, State = any> {
  constructor(props?: Props);
  props: Props & { children?: Child };
  state: State;
  setState(state: Partial<State>): void;
  render(): Child;
}
