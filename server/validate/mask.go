package validate

import (
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// updates are the fields that an update can name.
var updates = map[string]memory.Fields{
	"text": memory.TextField, "kind": memory.KindField, "author": memory.AuthorField, "event_time": memory.EventTimeField,
	"metadata": memory.MetadataField, "tags": memory.TagsField, "importance": memory.ImportanceField,
	"expiry": memory.ExpiryField, "embedding": memory.EmbeddingField, "pinned": memory.PinnedField,
	"valid_until": memory.ValidUntilField,
}

// FieldsOf are the fields that paths name; unknown paths name none.
func FieldsOf(paths []string) (fields memory.Fields) {
	for _, path := range paths {
		fields |= updates[path]
	}
	return fields
}

// memberPath begins the path of a member of the metadata.
const memberPath = "metadata."

// MembersOf are the members of the metadata that paths name.
func MembersOf(paths []string) (members []string) {
	for _, path := range paths {
		if name, ok := strings.CutPrefix(path, memberPath); ok && name != "" && !strings.Contains(name, ".") {
			members = append(members, name)
		}
	}
	return members
}

// MaskOf returns the fields that an update changes: those it names, or those
// that the record sets.
func MaskOf(r *loombridgev1.UpdateRecordRequest) []string {
	if paths := r.GetUpdateMask().GetPaths(); len(paths) > 0 {
		return paths
	}
	d := r.GetRecord()
	set := map[string]bool{
		"text": d.GetText() != "", "kind": d.GetKind() != "", "author": d.GetAuthor() != "", "event_time": d.GetEventTime() != nil,
		"metadata": d.GetMetadataForm() != nil, "tags": len(d.GetTags()) > 0, "importance": d != nil && d.Importance != nil,
		"expiry": d.GetExpiry() != nil, "embedding": len(d.GetEmbedding()) > 0, "pinned": d.GetPinned(), "valid_until": d.GetValidUntil() != nil,
	}
	maps.DeleteFunc(set, func(_ string, given bool) bool { return !given })
	return slices.Sorted(maps.Keys(set))
}
