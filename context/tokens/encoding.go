package tokens

import "strings"

// Encoding names a vocabulary.
type Encoding string

// The encodings that can be counted.
const (
	// O200K is used by gpt-4o, gpt-4.1, gpt-4.5, gpt-5 and the o-series.
	O200K Encoding = "o200k_base"
	// CL100K is used by gpt-4 and gpt-3.5.
	CL100K Encoding = "cl100k_base"
)

// DefaultModel is the model an empty name stands for.
const DefaultModel = "gpt-4o"

// families lists the model families whose vocabulary is known. A model belongs
// to the first family whose name it is, or begins with followed by a dash.
var families = []struct {
	name     string
	encoding Encoding
}{
	{"gpt-4o", O200K},
	{"chatgpt-4o", O200K},
	{"gpt-4.1", O200K},
	{"gpt-4.5", O200K},
	{"gpt-5", O200K},
	{"o1", O200K},
	{"o3", O200K},
	{"o4", O200K},
	{"gpt-4", CL100K},
	{"gpt-3.5", CL100K},
	{"gpt-35", CL100K},
}

// EncodingFor returns the vocabulary to count with for a model, and whether it
// is the model's own. Names may carry a provider ("openai/gpt-4o") or a
// fine-tune ("ft:gpt-4o:acme"). Models of an unknown vocabulary are counted
// with O200K, which is an estimate. An empty name is DefaultModel.
func EncodingFor(model string) (encoding Encoding, exact bool) {
	if model == "" {
		model = DefaultModel
	}
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "ft:"), ":")
	for _, f := range families {
		if inFamily(name, f.name) {
			return f.encoding, true
		}
	}
	return O200K, false
}

// inFamily accepts "gpt-5", "gpt-5-mini" and "gpt-5.1" for "gpt-5". A point is
// accepted only there: "gpt-4.1" and "gpt-4.5" have other vocabularies than
// "gpt-4" and families of their own.
func inFamily(name, family string) bool {
	rest, ok := strings.CutPrefix(name, family)
	switch {
	case !ok:
		return false
	case rest == "" || rest[0] == '-':
		return true
	}
	return family == "gpt-5" && rest[0] == '.'
}
