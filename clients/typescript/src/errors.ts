import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";

import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import type { ErrorReason } from "./gen/loombridge/v1/errors_pb.js";

/** The name of a reason, such as `RECORD_NOT_FOUND`; `ErrorReason` of `loom-bridge/v1` describes each. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** A field of a request that breaks a rule. */
export interface FieldViolation {
  /** Path of the field, such as `messages[2].role`. */
  readonly field: string;
  /** The rule, for people. */
  readonly description: string;
}

/** What an error says besides its message. */
export interface ErrorDetails {
  /** The status of gRPC. */
  readonly code: Code;
  /** Why, for programs; empty if no server said so. */
  readonly reason?: Reason | "";
  /** Values of the reason, such as `id` and `version` of `VERSION_CONFLICT`. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** All fields that break a rule. */
  readonly violations?: readonly FieldViolation[];
  /** How long to wait before the call is made again, where the server knows it. */
  readonly retryAfterMs?: number | undefined;
  /** What it came from. */
  readonly cause?: unknown;
}

/**
 * Base of all errors that calls end with. Decide by the class or by `reason`, never by the text.
 * Arguments that can't travel are a plain `TypeError`, before any call.
 */
export class LoomBridgeError extends Error implements ErrorDetails {
  readonly code: Code;
  readonly reason: Reason | "";
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly retryAfterMs: number | undefined;

  /** Takes what happened, for people, and its details. */
  constructor(message: string, details: ErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    this.reason = details.reason ?? "";
    this.metadata = details.metadata ?? {};
    this.violations = details.violations ?? [];
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The request breaks a rule; `violations` names each field. */
export class InvalidRequestError extends LoomBridgeError {}
/** There is no such record, tool, step, agent, … */
export class NotFoundError extends LoomBridgeError {}
/** The id, key or name is taken, or the request id was used for another request. */
export class AlreadyExistsError extends LoomBridgeError {}
/** The credential does not allow it. */
export class PermissionError extends LoomBridgeError {}
/** No credential, or one that the server does not know. */
export class UnauthenticatedError extends LoomBridgeError {}
/** Something else was changed first, such as the version of a record: read again, and decide. */
export class ConflictError extends LoomBridgeError {}
/** It is not possible as things stand, such as a prompt that does not fit its budget. */
export class StateError extends LoomBridgeError {}
/** A limit or quota is reached; waiting does not help. */
export class LimitError extends LoomBridgeError {}
/** The server can't do it now: the same call may be made again later. */
export class UnavailableError extends LoomBridgeError {}
/** Too much work is waiting, or a tool was called too often; see `retryAfterMs`. */
export class OverloadedError extends UnavailableError {}
/**
 * No server answers, or the connection broke: a call that changes something may or may not have
 * taken effect. Give it a `requestId`, and make it again.
 */
export class ServerUnreachableError extends UnavailableError {}
/** It took longer than its timeout; it may have taken effect. */
export class DeadlineError extends LoomBridgeError {}
/** The caller gave it up by an `AbortSignal` or closed the client; it may have taken effect. */
export class CancelledError extends LoomBridgeError {}
/** A fault of the server; its log has the cause. */
export class InternalError extends LoomBridgeError {}

type Kind = typeof LoomBridgeError;

const BY_REASON: Partial<Record<Reason, Kind>> = {
  OVERLOADED: OverloadedError,
  TOOL_LIMIT_REACHED: OverloadedError,
  SLOW_CONSUMER: UnavailableError,
};

const BY_CODE: Partial<Record<Code, Kind>> = {
  [Code.InvalidArgument]: InvalidRequestError,
  [Code.OutOfRange]: InvalidRequestError,
  [Code.NotFound]: NotFoundError,
  [Code.AlreadyExists]: AlreadyExistsError,
  [Code.PermissionDenied]: PermissionError,
  [Code.Unauthenticated]: UnauthenticatedError,
  [Code.Aborted]: ConflictError,
  [Code.FailedPrecondition]: StateError,
  [Code.ResourceExhausted]: LimitError,
  [Code.Unavailable]: UnavailableError,
  [Code.DeadlineExceeded]: DeadlineError,
  [Code.Canceled]: CancelledError,
  [Code.Internal]: InternalError,
  [Code.Unknown]: InternalError,
  [Code.DataLoss]: InternalError,
};

/** Returns the error that a failed call stands for. `gaveUp` tells that the caller ended it. */
export function fromCall(failed: unknown, address: string, gaveUp: boolean): Error {
  if (failed instanceof LoomBridgeError) {
    return failed;
  }
  const error = ConnectError.from(failed);
  const [info] = error.findDetails(ErrorInfoSchema);
  const code = error.code;
  if (!info) {
    return withoutReason(error, address, gaveUp);
  }
  const reason = info.reason as Reason;
  const [retry] = error.findDetails(RetryInfoSchema);
  const kind = BY_REASON[reason] ?? BY_CODE[code] ?? LoomBridgeError;
  return new kind(error.rawMessage, {
    code,
    reason,
    metadata: info.metadata,
    violations: error.findDetails(BadRequestSchema).flatMap((bad) =>
      bad.fieldViolations.map(({ field, description }) => ({ field, description })),
    ),
    retryAfterMs: retry?.retryDelay && durationMs(retry.retryDelay),
  });
}

/** What gRPC, Node.js or something between both sides made. */
function withoutReason(error: ConnectError, address: string, gaveUp: boolean): Error {
  const { code, rawMessage: said } = error;
  if (said.startsWith("serialize binary: ")) {
    return new TypeError(said);
  }
  const details = { code, cause: error };
  if (gaveUp) {
    return new CancelledError("the call was given up", { ...details, code: Code.Canceled });
  }
  if (code === Code.Unimplemented && said.includes("unknown service loombridge.v1.")) {
    return new LoomBridgeError(
      `${address} does not serve loombridge.v1: give the server's native address, which its line "listening on" names`,
      details,
    );
  }
  // A stream that ends without a status, or is cancelled by nobody here, is a lost connection.
  const lost = [Code.Unavailable, Code.Aborted, Code.Canceled].includes(code) || BROKEN.test(said) || ofNode(error.cause);
  if (lost) {
    return new ServerUnreachableError(
      `no Loom Bridge server answers at ${address} (${said}). Is one running there ` +
        `(npx loom-bridge --addr ${address}), and do both sides agree on TLS?`,
      { ...details, code: Code.Unavailable },
    );
  }
  return new (BY_CODE[code] ?? LoomBridgeError)(said, details);
}

/** Errors of sockets and TLS have a code, such as EPIPE. */
function ofNode(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string";
}

const BROKEN = /^protocol error: missing (status|output message)|stream closed with error code|session has been destroyed/i;
