package validate

import (
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// relation checks a name and the record that a relation goes to.
func (c *checker) relation(field, name, to string) {
	c.relationName(field+".name", name)
	c.requiredName(field+".to_id", to, record.MaxIDBytes)
}

func (c *checker) relationName(field, name string) {
	if problem := record.RelationProblem(name); problem != "" {
		c.add(field, "%s", problem)
	}
}

func (c *checker) relationNames(field string, names []string) {
	if c.count(field, len(names), relations.MaxNames) {
		for i, name := range names {
			c.relationName(Item(field, i), name)
		}
	}
}

// relations checks what is to be made or ended.
func (c *checker) relations(all []*loombridgev1.Relation) {
	if len(all) == 0 {
		c.add("relations", "is required")
	}
	if !c.count("relations", len(all), memory.MaxRelated) {
		return
	}
	for i, r := range all {
		field := Item("relations", i)
		c.requiredName(field+".from_id", r.GetFromId(), record.MaxIDBytes)
		c.relation(field, r.GetName(), r.GetToId())
		if r.GetFromId() == r.GetToId() && r.GetToId() != "" {
			c.add(field+".to_id", "is the record itself")
		}
	}
}

// related checks what a query asks for in addition to its hits.
func (c *checker) related(r *loombridgev1.RelatedOptions) {
	if r == nil {
		return
	}
	c.enum("related.direction", r.GetDirection())
	c.relationNames("related.names", r.GetNames())
	c.between("related.limit", int64(r.GetLimit()), 0, question.MaxRelated)
}

// RelateRecordsRequest checks what MemoryService.RelateRecords is asked.
func RelateRecordsRequest(r *loombridgev1.RelateRecordsRequest) error {
	var c checker
	c.owner(r)
	c.relations(r.GetRelations())
	c.request(r.GetRequestId())
	return c.err()
}

// UnrelateRecordsRequest checks what MemoryService.UnrelateRecords is asked.
func UnrelateRecordsRequest(r *loombridgev1.UnrelateRecordsRequest) error {
	var c checker
	c.owner(r)
	c.relations(r.GetRelations())
	c.request(r.GetRequestId())
	return c.err()
}

// ListRelationsRequest checks what MemoryService.ListRelations is asked.
func ListRelationsRequest(r *loombridgev1.ListRelationsRequest) error {
	var c checker
	c.record(r, r.GetName())
	c.enum("direction", r.GetDirection())
	c.relationNames("names", r.GetNames())
	c.namesPage(r, page.Relations, 2+record.MaxRelationName+record.MaxIDBytes)
	return c.err()
}
