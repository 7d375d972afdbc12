package formats

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// recordID is the name in front of a note that says which record it is.
const recordID = "loom_id"

// kept is what a note says in front of a record's text, in this order, and how a line of an
// export has it. Vectors, versions and relations are not of it.
var kept = []keptField{
	{recordID, "id", word},
	{"kind", "kind", word},
	{"key", "key", word},
	{"created", "create_time", moment},
	{"event_time", "event_time", moment},
	{"valid_until", "valid_until", moment},
	{"expire_time", "expire_time", moment},
	{"session_id", "session_id", word},
	{"author", "author", word},
	{"origin", "origin", word},
	{"importance", "importance", value},
	{"pinned", "pinned", value},
	{"tags", "tags", words},
	{"metadata", "metadata", value},
}

type keptField struct {
	name, field string
	form        form
}

// form is how a value stands in front of a note: as a text, a time, texts, or other JSON.
type form int

const (
	word form = iota
	moment
	words
	value
)

// WriteNote returns a record as a note in Markdown, and a name for its file. The note says in
// front of the text what readers of such notes know, and all that the format markdown needs to
// make the same record of it, without its vector, versions and relations. Names of different
// records differ.
func WriteNote(r record.Record) (name string, text []byte, err error) {
	encoded, err := record.Line{Record: r}.Encode()
	if err != nil {
		return "", nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	for _, k := range kept {
		if said := fields[k.field]; len(said) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", k.name, said)
		}
	}
	fmt.Fprintf(&b, "---\n\n%s\n", r.Text)
	first, _, _ := strings.Cut(strings.TrimLeft(r.Text, "# \n"), "\n")
	sum := sha256.Sum256([]byte(r.ID))
	return fmt.Sprintf("%s/%s-%s.md", fileName(r.Kind), fileName(first), hex.EncodeToString(sum[:8])), b.Bytes(), nil
}

// ReadNote is the line of an export that a note is; one that names no record is that of another id.
func ReadNote(text []byte, otherwise string) (line []byte, err error) {
	n, err := (&file{from: bytes.NewReader(text)}).note()
	if err != nil {
		return nil, err
	}
	if n.first(recordID) == "" {
		n.front[recordID] = []string{otherwise}
	}
	return n.record()
}

// KeepFront adds to a note what stands in front of another one and is not of a record: names of
// other programs, with the lines that belong to them.
func KeepFront(note, before []byte) []byte {
	rest, ok := bytes.CutPrefix(before, []byte("---\n"))
	head, _, ends := bytes.Cut(rest, []byte("\n---\n"))
	if !ok || !ends {
		return note
	}
	var others []string
	other := false
	for l := range strings.SplitSeq(string(head), "\n") {
		if name, _, named := strings.Cut(l, ":"); named && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "-") {
			other = !slices.ContainsFunc(kept, func(k keptField) bool { return strings.EqualFold(k.name, strings.TrimSpace(name)) })
		}
		if other {
			others = append(others, l)
		}
	}
	own, body, _ := bytes.Cut(note, []byte("\n---\n"))
	if len(others) == 0 {
		return note
	}
	return []byte(string(own) + "\n" + strings.Join(others, "\n") + "\n---\n" + string(body))
}

// fileName is a text as the name of a file on any system.
func fileName(text string) string {
	const most = 60
	name := strings.Join(strings.FieldsFunc(cut(text, most), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "-")
	if name == "" {
		return "record"
	}
	return name
}

// record is the line of an export that a note of WriteNote is.
func (n note) record() ([]byte, error) {
	fields := map[string]any{"text": strings.TrimSuffix(strings.TrimPrefix(n.body, "\n"), "\n")}
	for _, k := range kept {
		said := n.first(k.name)
		given, _ := json.Marshal(said) //nolint:errchkjson // a string
		switch at := when(given); {
		case said == "":
		case k.form == moment && at != nil:
			fields[k.field] = at
		case k.form == words:
			fields[k.field] = n.front[k.name]
		case k.form == word, k.form == moment:
			fields[k.field] = said
		case !json.Valid([]byte(said)):
			return nil, fmt.Errorf("%w: %s is no JSON", ErrFormat, k.name)
		default:
			fields[k.field] = json.RawMessage(said)
		}
	}
	return json.Marshal(fields)
}

// Graph collects records as a graph of entities, as MCP's memory server keeps it. What came from
// such a graph goes back as it came; any other record is an entity with its text as the
// observation, and its relations are relations of the graph. Such a graph has no times, tags or
// metadata. It is not safe for concurrent use.
type Graph struct {
	entities  []*entity
	byName    map[string]*entity
	names     map[string]string // of the entities that records are, by the records' ids
	relations []entity
	bytes     int
}

// NewGraph makes an empty graph.
func NewGraph() *Graph {
	return &Graph{byName: make(map[string]*entity), names: make(map[string]string)}
}

// Add adds a record of an export, after those that stand before it there. Errors: ErrFormat where
// the graph has more than 256 MiB.
func (g *Graph) Add(l record.Line) error {
	r := l.Record
	if g.bytes += len(r.ID) + len(r.Text) + len(r.Metadata); g.bytes > maxHeldBytes {
		return fmt.Errorf("%w: the graph has more than %d bytes", ErrFormat, maxHeldBytes)
	}
	var of struct {
		Source   string `json:"source"`
		Entity   string `json:"entity"`
		Type     string `json:"entity_type"`
		From     string `json:"from"`
		Relation string `json:"relation"`
		To       string `json:"to"`
	}
	if json.Unmarshal(r.Metadata, &of) == nil && of.Source == graphSource {
		switch {
		case of.From != "" && of.Relation != "" && of.To != "":
			g.relations = append(g.relations, entity{Type: "relation", From: of.From, To: of.To, Relation: of.Relation})
			return nil
		case of.Entity != "":
			e := g.entity(of.Entity, of.Type)
			if r.Text != e.text() {
				e.Observations = append(e.Observations, strings.TrimPrefix(r.Text, e.Name+": "))
			}
			g.names[r.ID] = e.Name
			return nil
		}
	}
	name := r.Key
	if name == "" {
		name = r.ID
	}
	e := g.entity(name, r.Kind)
	e.Observations = append(e.Observations, r.Text)
	g.names[r.ID] = name
	for _, one := range l.Relations {
		if from, to := g.names[one.From], g.names[one.To]; from != "" && to != "" && one.End.IsZero() {
			g.relations = append(g.relations, entity{Type: "relation", From: from, To: to, Relation: one.Name})
		}
	}
	return nil
}

func (g *Graph) entity(name, kind string) *entity {
	e := g.byName[name]
	if e == nil {
		e = &entity{Type: "entity", Name: name, Kind: kind}
		g.entities, g.byName[name] = append(g.entities, e), e
	}
	return e
}

// Write writes the graph as lines of JSON.
func (g *Graph) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range g.entities {
		if err := lines.Encode(entityLine{e.Type, e.Name, e.Kind, append([]string{}, e.Observations...)}); err != nil {
			return err
		}
	}
	for _, r := range g.relations {
		if err := lines.Encode(relationLine{r.Type, r.From, r.To, r.Relation}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// entityLine and relationLine are the lines of a graph.
type entityLine struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	Kind         string   `json:"entityType"`
	Observations []string `json:"observations"`
}

type relationLine struct {
	Type     string `json:"type"`
	From     string `json:"from"`
	To       string `json:"to"`
	Relation string `json:"relationType"`
}
