import type { JsonValue } from "@bufbuild/protobuf";

/** Bytes or JSON, as answers hold them: a `…Form` of a message, such as `record.metadataForm`. */
export interface Form {
  /** The field that is set. */
  readonly case: string | undefined;
  /** What it holds. */
  readonly value?: unknown;
}

/**
 * Returns the JSON value or the bytes of a `…Form` field in an answer; undefined if it is unset.
 * Integers beyond 2^53 lose digits: parse the text in `form.value` by other means to keep them.
 */
export function valueOf(form: Form): JsonValue | Uint8Array | undefined {
  return form.case?.endsWith("Json") ? (JSON.parse(form.value as string) as JsonValue) : (form.value as Uint8Array);
}

/** Returns JSON text; a `TypeError` for what is none, such as a function or a bigint. */
export function textOf(what: string, value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) {
    throw new TypeError(`${what} is no JSON value`);
  }
  return text;
}
