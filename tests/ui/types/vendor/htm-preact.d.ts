// htm, bound to Preact.

export function html(strings: TemplateStringsArray, ...values: unknown[]): any;
