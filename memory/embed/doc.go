// Package embed converts texts into vectors by asking a server that speaks the
// OpenAI protocol: OpenAI itself, Ollama, vLLM, Text Embeddings Inference, LM
// Studio, llama.cpp and many more.
//
// The nouns:
//
//   - An [Embedder] makes one vector for each text, all in one space.
//   - A [Client] is the embedder that asks a server. It sends several texts in
//     one request, waits and tries again where that may help, and checks what
//     comes back: a vector for each text, all of one length, all finite.
//   - The breaker stops a client from asking a server that keeps failing. After
//     a while it lets one request through, to see.
//   - A [StatusError] is what the server answered when it refused.
//
// Caveats: texts leave the process in the clear unless the address is https. The
// key is sent to the server and appears in no error and no log. What the server
// says in an error is cut short, and never trusted.
package embed
