package compress

import (
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// stub stands for what is no text.
func (j *job) stub() string {
	size := int64(len(j.Content))
	if url, ok := media.ParseDataURL(j.Content); ok {
		size = url.Info().Size
	}
	return "[" + j.kind + " " + text.HumanSize(size) + " → " + j.RefPath + "]"
}

// contentKind is what a content is.
func contentKind(content string, strategy Strategy) string {
	if url, ok := media.ParseDataURL(content); ok {
		return media.Kind(url.Type)
	}
	kind, _ := blob.KindOf([]byte(content))
	if kind == blob.KindText && strategy == Exec {
		return blob.KindLog
	}
	return kind
}
