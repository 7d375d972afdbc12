package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/record"
)

// readMem0 reads memories of mem0: a list, or an object with it as results or memories.
func readMem0(f *file, out *output) error {
	return f.values(func(value json.RawMessage) error {
		var l struct {
			Results  []json.RawMessage `json:"results"`
			Memories []json.RawMessage `json:"memories"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		all := slices.Concat(l.Results, l.Memories)
		if l.Results == nil && l.Memories == nil {
			all = []json.RawMessage{value}
		}
		for i, one := range all {
			if err := out.memory(one); err != nil {
				return fmt.Errorf("memory %d: %w", i+1, err)
			}
		}
		return nil
	})
}

// mem0 is the kind of a memory's record, and the metadata that say whose the memory is: by these
// loombridge.mem0 of the Python client finds it.
const mem0 = "mem0"

// memory gives out a memory of mem0.
func (o *output) memory(value json.RawMessage) error {
	var m struct {
		ID         string          `json:"id"`
		Memory     string          `json:"memory"`
		Text       string          `json:"text"`
		Content    string          `json:"content"` // so OpenMemory, of the same makers, calls it
		State      string          `json:"state"`
		User       string          `json:"user_id"`
		Agent      string          `json:"agent_id"`
		Run        string          `json:"run_id"`
		Actor      string          `json:"actor_id"`
		Role       string          `json:"role"`
		Categories []string        `json:"categories"`
		Metadata   map[string]any  `json:"metadata"`
		Created    json.RawMessage `json:"created_at"`
		Expires    json.RawMessage `json:"expiration_date"`
	}
	if err := decode(value, &m); err != nil {
		return err
	}
	if o.user != "" && m.User != "" && m.User != o.user || m.State == "deleted" {
		o.counts.LeftOut++
		return nil
	}
	r := line{Text: cmp.Or(m.Memory, m.Text, m.Content), Kind: mem0, Metadata: map[string]any{}, SessionID: short(m.Run, record.MaxSessionBytes), CreateTime: when(m.Created), ExpireTime: when(m.Expires)}
	if r.Text == "" {
		return fmt.Errorf("%w: it has no memory, so it is none of mem0", ErrFormat)
	}
	for name, value := range m.Metadata {
		r.Metadata[name] = value
	}
	r.Metadata["source"] = o.source
	scope := map[string]string{"user_id": m.User, "agent_id": m.Agent, "run_id": m.Run, "actor_id": m.Actor, "role": m.Role}
	maps.DeleteFunc(scope, func(_, value string) bool { return value == "" })
	r.Metadata[mem0] = scope
	if m.Role == "user" {
		r.Origin = "user"
	}
	r.Tags = tags(m.Categories)
	r.ID = named(o.source, r.Text, m.User, m.Agent, m.Run)
	if m.ID != "" {
		r.ID = short(o.source+"-"+m.ID, record.MaxIDBytes)
	}
	return o.record(r)
}

// tags are the tags of a record that some words are: each once, in order, and as long as a tag
// may be.
func tags(words []string) (all []string) {
	for _, word := range words {
		if word = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(word), "#")); word != "" && len(word) <= record.MaxTagBytes {
			all = append(all, word)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), record.MaxTags)]
}

// graphSource is the name of the format of a graph, which its records keep.
const graphSource = "mcp-memory"

// entity is a line of a graph: an entity with what was observed of it, or a relation.
type entity struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	Kind         string   `json:"entityType"`
	Observations []string `json:"observations"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	Relation     string   `json:"relationType"`
}

// text is the text of the record that an entity is.
func (e *entity) text() string {
	if e.Kind == "" {
		return e.Name
	}
	return e.Name + " (" + e.Kind + ")"
}

// readGraph reads a graph of entities. An entity, each observation of it, and each relation are
// separate records, so that a graph that has grown adds what is new. An observation is
// related as `about` to its entity, and a relation as `from` and `to` to its ends.
func readGraph(f *file, out *output) error {
	return f.values(func(value json.RawMessage) error {
		var l struct {
			entity
			Entities  []entity `json:"entities"`
			Relations []entity `json:"relations"`
		}
		if err := decode(value, &l); err != nil {
			return err
		}
		all := []entity{l.entity}
		if l.Type == "" && (l.Entities != nil || l.Relations != nil) {
			all = nil
			for _, e := range l.Entities {
				e.Type = "entity"
				all = append(all, e)
			}
			for _, r := range l.Relations {
				r.Type = "relation"
				all = append(all, r)
			}
		}
		for _, e := range all {
			switch {
			case e.Type == "entity" && e.Name != "":
				if err := out.entity(e); err != nil {
					return err
				}
			case e.Type == "relation" && e.From != "" && e.To != "" && e.Relation != "":
				r := line{
					ID: named(out.source, "relation", e.From, e.Relation, e.To), Text: strings.Join([]string{e.From, strings.ReplaceAll(e.Relation, "_", " "), e.To}, " "),
					Metadata:  map[string]any{"source": out.source, "from": e.From, "relation": e.Relation, "to": e.To},
					Relations: []relation{{"from", out.entityID(e.From), unknown}, {"to", out.entityID(e.To), unknown}},
				}
				if e.From == e.To {
					r.Relations = r.Relations[:1]
				}
				if err := out.record(r); err != nil {
					return err
				}
			default:
				return fmt.Errorf("%w: it is no entity with a name, and no relation with from, to and relationType", ErrFormat)
			}
		}
		return nil
	})
}

func (o *output) entityID(name string) string { return named(o.source, "entity", name) }

// entity gives out an entity and its observations.
func (o *output) entity(e entity) error {
	about := map[string]any{"source": o.source, "entity": e.Name, "entity_type": e.Kind}
	if err := o.record(line{ID: o.entityID(e.Name), Text: e.text(), Metadata: about}); err != nil {
		return err
	}
	for _, observed := range e.Observations {
		if strings.TrimSpace(observed) == "" {
			continue
		}
		err := o.record(line{
			ID: named(o.source, "observation", e.Name, observed), Text: e.Name + ": " + observed, Metadata: about,
			Relations: []relation{{"about", o.entityID(e.Name), unknown}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
