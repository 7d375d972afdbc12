// Package auth says who calls.
//
// [Credentials] are the callers of a file; an [Identity] is one of them: its tenant,
// and the agents that it may act for. [Of] finds it in the context of a call, and
// [AgentScope] and [MemoryScope] make the scopes of the domain from it. [TLS] is what connections are secured with.
//
// Every scope is made from an identity, never from a request alone. Both files are
// read again on Reload, while calls go on; a file that can't be used changes nothing.
package auth
