// What the dashboard uses of uPlot.

export default class uPlot {
  constructor(options: any, data: any, into: HTMLElement);
  static paths: any;
  readonly bbox: { left: number; top: number; width: number; height: number };
  readonly ctx: CanvasRenderingContext2D;
  readonly cursor: { idx?: number | null; left?: number; top?: number };
  readonly over: HTMLElement;
  readonly root: HTMLElement;
  readonly data: any;
  readonly series: any[];
  destroy(): void;
  redraw(rebuild?: boolean): void;
  setData(data: any): void;
  setSize(size: { width: number; height: number }): void;
  setCursor(place: { left: number; top: number }): void;
  valToPos(value: number, scale: string, canvas?: boolean): number;
  posToVal(place: number, scale: string): number;
  posToIdx(place: number): number;
}
