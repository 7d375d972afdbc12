package mcp

import (
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

func relationTools() []tool {
	const (
		// owner is what ownerProperties describes: each description is paid for in every prompt.
		owner    = `"user":{"type":"string"},"space":{"type":"string"}`
		relation = `"from_id":{"type":"string"},"name":{"type":"string","description":"such as part_of"},"to_id":{"type":"string"},` + owner
	)
	return []tool{
		{
			name: "memory_relate", description: "Relate one memory to another by name.",
			properties: relation, required: []string{"from_id", "name", "to_id"}, call: taking(relateMemories), arguments: relationArguments{},
		},
		{
			name: "memory_unrelate", description: "End a relation. Both memories stay.",
			properties: relation, required: []string{"from_id", "name", "to_id"}, destroys: true, call: taking(unrelateMemories), arguments: relationArguments{},
		},
		{
			name: "memory_relations", description: "List the relations of one memory, by id or key: out goes to the ids, in comes from them.",
			properties: `"direction":{"enum":["out","in"],"description":"default both"},"names":{"type":"array","items":{"type":"string"}},"id":{"type":"string"},"key":{"type":"string"},` + owner,
			reads:      true, call: taking(listRelations), arguments: relationsArguments{},
		},
	}
}

type relationArguments struct {
	FromID string `json:"from_id"`
	Name   string `json:"name"`
	ToID   string `json:"to_id"`
	User   string `json:"user"`
	Space  string `json:"space"`
}

// all is the relation as the native API takes it.
func (a relationArguments) all() []*loombridgev1.Relation {
	return []*loombridgev1.Relation{{FromId: a.FromID, Name: a.Name, ToId: a.ToID}}
}

func relateMemories(c toolCall, a relationArguments) (any, error) {
	made, err := c.s.memory.RelateRecords(c.ctx, &loombridgev1.RelateRecordsRequest{AgentId: c.agent, UserId: a.User, SpaceId: a.Space, Relations: a.all()})
	switch {
	case err != nil:
		return nil, err
	case made.GetCreated() == 0:
		return "They were related so before.", nil
	}
	return "Related.", nil
}

func unrelateMemories(c toolCall, a relationArguments) (any, error) {
	ended, err := c.s.memory.UnrelateRecords(c.ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: c.agent, UserId: a.User, SpaceId: a.Space, Relations: a.all()})
	switch {
	case err != nil:
		return nil, err
	case ended.GetDeleted() == 0:
		return "There was no such relation.", nil
	}
	return "Ended.", nil
}

// relationsArguments repeats the fields of nameArguments: the test that compares schemas
// does not look into embedded structs.
type relationsArguments struct {
	Direction string   `json:"direction"`
	Names     []string `json:"names"`
	ID        string   `json:"id"`
	Key       string   `json:"key"`
	User      string   `json:"user"`
	Space     string   `json:"space"`
}

// directions are the names of directions.
var directions = map[string]loombridgev1.RelationDirection{
	"":    loombridgev1.RelationDirection_RELATION_DIRECTION_UNSPECIFIED,
	"out": loombridgev1.RelationDirection_RELATION_DIRECTION_OUT,
	"in":  loombridgev1.RelationDirection_RELATION_DIRECTION_IN,
}

// related is a relation as one of its records sees it.
type related struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

func listRelations(c toolCall, a relationsArguments) (any, error) {
	if err := (nameArguments{ID: a.ID, Key: a.Key}).check(); err != nil {
		return nil, err
	}
	direction, ok := directions[a.Direction]
	if !ok {
		return nil, badArgument("direction", "is not out or in")
	}
	request := &loombridgev1.ListRelationsRequest{AgentId: c.agent, UserId: a.User, SpaceId: a.Space, Direction: direction, Names: a.Names}
	request.Name = &loombridgev1.ListRelationsRequest_Id{Id: a.ID}
	if a.Key != "" {
		request.Name = &loombridgev1.ListRelationsRequest_Key{Key: a.Key}
	}
	var out struct {
		ID  string    `json:"id"`
		Out []related `json:"out,omitempty"`
		In  []related `json:"in,omitempty"`
	}
	for {
		listed, err := c.s.memory.ListRelations(c.ctx, request)
		if err != nil {
			return nil, err
		}
		out.ID = listed.GetRecordId()
		for _, r := range listed.GetRelations() {
			if r.GetFromId() == out.ID {
				out.Out = append(out.Out, related{r.GetName(), r.GetToId()})
			} else {
				out.In = append(out.In, related{r.GetName(), r.GetFromId()})
			}
		}
		if request.PageToken = listed.GetNextPageToken(); request.PageToken == "" {
			return out, nil
		}
	}
}

// through is why a record that was not found itself came along with a hit: a relation from
// that hit, or to it.
type through struct {
	Name       string `json:"name"`
	FromID     string `json:"from_id,omitempty"`
	ToID       string `json:"to_id,omitempty"`
	ReplacedID string `json:"replaced_id,omitempty"`
}

func throughOf(r *loombridgev1.HitRelation) *through {
	out := &through{Name: r.GetName(), ReplacedID: r.GetReplacedId()}
	if r.GetOutgoing() {
		out.FromID = r.GetHitId()
	} else {
		out.ToID = r.GetHitId()
	}
	return out
}
