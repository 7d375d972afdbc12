package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Path begins the address of every page.
const Path = "/console/"

// policy lets a page run the script and style of this server and nothing else, call this
// server alone, and make no text into a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed built
var built embed.FS

// file is one of the files. It is packed once, when it is first asked for: the page comes before
// its script is packed.
type file struct {
	media  string
	plain  []byte
	packed func() []byte
}

// files are the built files by their names.
var files = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	names, _ := fs.Glob(built, "built/*") // the pattern is well formed
	for _, name := range names {
		plain, err := built.ReadFile(name)
		if err != nil {
			panic(err) // the binary has it
		}
		all[path.Base(name)] = file{mime.TypeByExtension(path.Ext(name)), plain, sync.OnceValue(func() []byte {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, _ = w.Write(plain) // a buffer takes all
			_ = w.Close()
			return packed.Bytes()
		})}
	}
	return all
})

// ServeHTTP answers with a file, and for every other path with the page: its script reads
// from the address what to show.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := files()[strings.TrimPrefix(r.URL.Path, Path)]
	if !ok {
		f = files()["index.html"]
	}
	body, h := f.plain, w.Header()
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.packed()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", policy)
	_, _ = w.Write(body) // who does not read it has left
}
