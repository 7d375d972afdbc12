package transfers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// relations are the sub-commands that show, make and end relations of records.
func (d *desk) relations() []*cobra.Command {
	var direction string
	var key bool
	ask := &loombridgev1.ListRelationsRequest{}
	show := d.sub("relations ID", "Write how a record is related as lines of JSON", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
		number, ok := map[string]loombridgev1.RelationDirection{
			"": loombridgev1.RelationDirection_RELATION_DIRECTION_UNSPECIFIED, "out": loombridgev1.RelationDirection_RELATION_DIRECTION_OUT,
			"in": loombridgev1.RelationDirection_RELATION_DIRECTION_IN,
		}[direction]
		if !ok {
			return fmt.Errorf("--direction %q is not out or in", direction)
		}
		ask.AgentId, ask.UserId, ask.SpaceId, ask.Direction = d.agent, d.user, d.space, number
		ask.Name = &loombridgev1.ListRelationsRequest_Id{Id: args[0]}
		if key {
			ask.Name = &loombridgev1.ListRelationsRequest_Key{Key: args[0]}
		}
		for {
			got, err := d.memory.ListRelations(ctx, ask)
			if err != nil {
				return err
			}
			for _, r := range got.GetRelations() {
				if err := d.json(r); err != nil {
					return err
				}
			}
			if ask.PageToken = got.GetNextPageToken(); ask.PageToken == "" {
				return nil
			}
		}
	})
	show.Flags().StringVar(&direction, "direction", "", "only relations that go `out` from it, or in, which come to it; default: both")
	show.Flags().StringArrayVar(&ask.Names, "name", nil, "only relations of this `name`; may be given again")
	show.Flags().BoolVar(&key, "key", false, "ID is the caller's own key of the record")
	relate := d.sub("relate FROM NAME TO", "Relate a record to another", cobra.ExactArgs(3), func(ctx context.Context, args []string) error {
		got, err := d.memory.RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space, Relations: relation(args)})
		return d.report(err, got.GetCreated(), "the relation was made", "the relation was there already")
	})
	relate.Long = "Relate a record to another of the same memory, both given by id. A name is 1 to 64 letters,\ndigits, _, -, . and :, beginning with a letter, such as part_of."
	unrelate := d.sub("unrelate FROM NAME TO", "End the relation of a record to another", cobra.ExactArgs(3), func(ctx context.Context, args []string) error {
		got, err := d.memory.UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: d.agent, UserId: d.user, SpaceId: d.space, Relations: relation(args)})
		return d.report(err, got.GetDeleted(), "the relation was ended", "there was no such relation")
	})
	return []*cobra.Command{show, relate, unrelate}
}

func relation(args []string) []*loombridgev1.Relation {
	return []*loombridgev1.Relation{{FromId: args[0], Name: args[1], ToId: args[2]}}
}

// report prints whether a call changed anything.
func (d *desk) report(err error, changed int32, done, before string) error {
	if err != nil {
		return err
	}
	if changed == 0 {
		done = before
	}
	_, err = fmt.Fprintln(d.Out, done)
	return err
}

// json writes a message as a line.
func (d *desk) json(m proto.Message) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "%s\n", text)
	}
	return err
}
