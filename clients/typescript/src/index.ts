/** Client of Loom Bridge: memory, context, tools and events for agents. */
export { timestampDate, timestampFromDate, durationFromMs } from "@bufbuild/protobuf/wkt";
export { Code } from "@connectrpc/connect";
export * from "./client.js";
export {
  AlreadyExistsError,
  CancelledError,
  ConflictError,
  DeadlineError,
  type ErrorDetails,
  type FieldViolation,
  InternalError,
  InvalidRequestError,
  LimitError,
  LoomBridgeError,
  NotFoundError,
  OverloadedError,
  PermissionError,
  type Reason,
  ServerUnreachableError,
  StateError,
  UnauthenticatedError,
  UnavailableError,
} from "./errors.js";
export { type Form, valueOf } from "./json.js";
export { type Event, type SubscribeOptions, Subscription, type Topics } from "./subscription.js";
export type { ConnectOptions, Tls } from "./transport.js";
