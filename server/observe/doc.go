// Package observe logs and counts calls.
//
// An [Observer] is called for each call by the interceptors: it logs faults of the
// server, slow calls and refusals, and counts all of them in [Metrics]. A [CallError] is
// how a call ends that did not succeed: the client's status, and the cause, which
// only the log sees.
//
// No line and no label holds a payload, a credential, or a name that callers choose
// but the agent's in the log.
package observe
