// Package egress is the one way from tools to a network: a proxy in the server, and a
// client for the tools that run in it.
//
// The nouns:
//
//   - A [Policy] says what may be reached: a list of [Rule], each a host and, if it says so,
//     ports, methods and paths; or every public host. The zero Policy reaches nothing.
//   - A [Gate] is the server's side of it all: it looks names up, connects, counts, writes
//     the audit and has the certificate authority of tunnels that are looked into.
//   - A [Session] is what one call may do. It serves the proxy of a sandboxed process, and
//     is an [http.RoundTripper] for tools in the server.
//
// Promises: a name is looked up once, and the checked address is the one connected to.
// Non-public addresses are refused unless a rule names them. Every request is checked,
// including requests after a redirect. A secret is known to the process as a placeholder,
// and becomes real only in the header and for the host that its rule names, over TLS;
// answers of that host are searched for it.
//
// Caveats: a tunnel is looked into only where a rule has a secret, methods or paths; what
// else goes through one is bytes to an allowed host. A host that gets a secret can send it
// back changed, and the proxy does not know it then. HTTP/1.1 alone is spoken to hosts whose
// tunnels are looked into.
package egress
