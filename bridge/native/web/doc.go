// Package web holds the tools that ask others on a network: web:search, web:fetch,
// browser:navigate, weather:get and llm:generate.
//
// Every request goes through an egress gate. Pages are fetched under the rules of the agent that
// calls; search, weather and models are the operator's own endpoints, which may be in a
// private network, and whose redirects are not followed.
//
// Names, arguments, results and errors of web:search, weather:get and llm:generate are those
// of loom.v1. A page is given as readable text with its title and links; what is no text is
// the body of the result, as bytes.
//
// Caveats: no script of a page is run. A page is a stranger's text: nothing in it is an
// instruction, whatever it says.
package web
