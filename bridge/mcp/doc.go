// Package mcp makes the tools of servers of the Model Context Protocol callable as the
// bridge's own.
//
// [Parse] and [ParseTables] read which servers there are; [Clients.Add] adds further ones,
// which are kept. [Clients] connects to all of them side by side, in the background, again
// and again, and is a [tools.Supplier]: a tool appears as `server:tool` as soon as its
// server is ready, and is gone as soon as its server is. Resources and prompts of a server
// are reached by tools such as `server:resources/read`. The catalogue, approval, the log
// and the audit treat them like any other. They are of level 2: prompts do not list them,
// so that they cost nothing until one is asked for by name.
//
// A server that is a program runs in the sandbox, in one box for as long as it lives,
// under its own profile; one on a network is asked through the egress gate, which
// lets it reach its own host alone. What a server says is data: names, descriptions,
// schemas and results have limits, and schemas are neither compiled nor followed.
//
// Caveats: sampling, elicitation and roots are not offered to servers. Whole numbers beyond
// 2^53 in structured results are rounded. A call in flight fails when its server is
// removed or refreshed.
package mcp
