package tokens

import (
	"fmt"
	"sync"
)

// Encoding names a vocabulary.
type Encoding string

// The encodings that are counted exactly.
const (
	// O200K is used by gpt-4o, gpt-4.1, gpt-4.5, gpt-5 and the o-series.
	O200K Encoding = "o200k_base"
	// CL100K is used by gpt-4, gpt-3.5 and the embedding models.
	CL100K Encoding = "cl100k_base"
	// P50K is used by the older completion models.
	P50K Encoding = "p50k_base"
	// R50K is used by gpt-2 and the oldest models.
	R50K Encoding = "r50k_base"
)

// The encodings that others are estimated by. They have a token for each digit, as
// Gemini, Qwen and Mistral do: digits in threes would count a table of figures at
// half.
const (
	// O200KApart is O200K with a token for each digit, and line breaks apart from
	// what stands around them, as Gemini has them.
	O200KApart Encoding = "o200k_apart"
	// CL100KDigits is CL100K with a token for each digit, but for Chinese and
	// Japanese, which O200K counts: what Qwen makes of text in Latin letters, and
	// nearly what it makes of the others.
	CL100KDigits Encoding = "cl100k_digits"
)

// The engines, each loaded once in the life of the process, when it is first
// needed: the tables of one take up to 20 MB, and many counters share them. They
// never change afterwards.
var engines = map[Encoding]func() (*engine, error){
	O200K:  loadO200K,
	CL100K: loadCL100K,
	P50K:   sync.OnceValues(func() (*engine, error) { return load(P50K, splitP50K{loadClasses()}) }),
	R50K:   sync.OnceValues(func() (*engine, error) { return load(R50K, splitP50K{loadClasses()}) }),
	O200KApart: sync.OnceValues(func() (*engine, error) {
		base, err := loadO200K()
		if err != nil {
			return nil, err
		}
		return &engine{vocabulary: base.vocabulary, splitter: splitApart{splitO200K{loadClasses(), 1}}}, nil
	}),
	CL100KDigits: sync.OnceValues(func() (*engine, error) {
		base, err := loadCL100K()
		if err != nil {
			return nil, err
		}
		other, err := loadO200K()
		if err != nil {
			return nil, err
		}
		return &engine{vocabulary: base.vocabulary, han: other.vocabulary, splitter: splitCL100K{loadClasses(), 1}}, nil
	}),
}

// numberDigits is how many digits of a number are one piece.
const numberDigits = 3

// The engines whose vocabularies others share.
var (
	loadO200K = sync.OnceValues(func() (*engine, error) {
		return load(O200K, splitO200K{loadClasses(), numberDigits})
	})
	loadCL100K = sync.OnceValues(func() (*engine, error) {
		return load(CL100K, splitCL100K{loadClasses(), numberDigits})
	})
)

func engineFor(encoding Encoding) (*engine, error) {
	if load, ok := engines[encoding]; ok {
		return load()
	}
	return nil, fmt.Errorf("tokens: unknown encoding %q", encoding)
}

func load(encoding Encoding, s splitter) (*engine, error) {
	v, err := loadVocabulary(string(encoding))
	if err != nil {
		return nil, fmt.Errorf("tokens: load %s: %w", encoding, err)
	}
	return &engine{vocabulary: v, splitter: s}, nil
}
