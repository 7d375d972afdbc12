package convert

import (
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// ToRelations are relations that a request names.
func ToRelations(all []*loombridgev1.Relation) []record.Relation {
	out := make([]record.Relation, len(all))
	for i, r := range all {
		out[i] = record.Relation{From: r.GetFromId(), Name: r.GetName(), To: r.GetToId()}
	}
	return out
}

// Relation describes a relation.
func Relation(r record.Relation) *loombridgev1.Relation {
	return &loombridgev1.Relation{FromId: r.From, Name: r.Name, ToId: r.To, CreateTime: Timestamp(r.Time)}
}

// outgoing are the relations that a record is to begin with.
func outgoing(all []*loombridgev1.RelationTo) []record.Relation {
	var out []record.Relation
	for _, r := range all {
		out = append(out, record.Relation{Name: r.GetName(), To: r.GetToId()})
	}
	return out
}

func outgoingOf(r record.Record) (out []*loombridgev1.RelationTo) {
	for _, one := range r.Relations {
		out = append(out, &loombridgev1.RelationTo{Name: one.Name, ToId: one.To})
	}
	return out
}

func relatedOf(r *loombridgev1.RelatedOptions) *question.Related {
	if r == nil {
		return nil
	}
	return &question.Related{Way: relations.Way(r.GetDirection()), Names: r.GetNames(), Limit: int(r.GetLimit())}
}

func throughOf(hit memory.Hit) *loombridgev1.HitRelation {
	t := hit.Through
	if t == nil {
		return nil
	}
	out := &loombridgev1.HitRelation{HitId: t.Hit, Name: t.Relation.Name, Outgoing: t.Relation.From == t.Hit}
	other := t.Relation.To
	if !out.GetOutgoing() {
		other = t.Relation.From
	}
	if other != hit.Record.ID {
		out.ReplacedId = other
	}
	return out
}
