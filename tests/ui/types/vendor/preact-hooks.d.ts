// What the dashboard uses of Preact's hooks.

export function useState<Value>(first: Value | (() => Value)): [Value, (value: Value | ((before: Value) => Value)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useRef<Value>(first: Value): { current: Value };
export function useMemo<Value>(make: () => Value, inputs: readonly unknown[]): Value;
export function useId(): string;
