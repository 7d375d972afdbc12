package tokens

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/media"
)

// ImageTokens is an image whose size, or whose model's rule, is unknown.
const ImageTokens = 1600

// The rules for images.
const (
	// imageTiles: an image is made to fit into 2048 × 2048 and then to at most
	// 768 at its shorter side, and each tile of 512 × 512 costs.
	imageTiles = "tiles"
	// imagePatches: each patch of 32 × 32 costs, up to a limit of them.
	imagePatches = "patches"
	// imageArea: so many pixels are a token.
	imageArea = "area"
)

// The measures of these rules, in pixels.
const (
	fitSide   = 2048
	shortSide = 768
	tileSide  = 512
	patchSide = 32
)

// ImageRule says what images cost a model.
type ImageRule struct {
	// Rule is "tiles", "patches", "area", or empty where none is known.
	Rule string `toml:"rule"`
	// Base and Tile are the tokens of any image and of each tile.
	Base int `toml:"base"`
	Tile int `toml:"tile"`
	// Ratio is the tokens of a patch, Limit the most patches.
	Ratio float64 `toml:"ratio"`
	Limit int     `toml:"limit"`
	// Pixels are the pixels of a token. An image is made smaller until its
	// longer side is at most Edge.
	Pixels int `toml:"pixels"`
	Edge   int `toml:"edge"`
}

func (r ImageRule) check() error {
	ok := true
	switch r.Rule {
	case "":
	case imageTiles:
		ok = r.Base >= 0 && r.Tile > 0 && r.Base <= maxWindow && r.Tile <= maxWindow
	case imagePatches:
		ok = r.Ratio > 0 && r.Ratio <= maxRatio && r.Limit > 0 && r.Limit <= maxWindow
	case imageArea:
		ok = r.Pixels > 0 && r.Edge > 0 && r.Edge <= fitSide*fitSide
	default:
		return fmt.Errorf("image rule %q is not tiles, patches or area", r.Rule)
	}
	if !ok {
		return fmt.Errorf("image rule %q lacks a number, or has one out of range", r.Rule)
	}
	return nil
}

// tokens returns what an image of a size in pixels costs. Low asks for the
// cheapest form, which only tiles have.
func (r ImageRule) tokens(width, height int, low bool) int {
	if width <= 0 || height <= 0 {
		return ImageTokens
	}
	w, h := float64(width), float64(height)
	switch r.Rule {
	case imageTiles:
		if low {
			return r.Base
		}
		shrink := min(1, fitSide/max(w, h))
		shrink *= min(1, shortSide/(min(w, h)*shrink))
		return r.Base + r.Tile*parts(w*shrink, tileSide)*parts(h*shrink, tileSide)
	case imagePatches:
		patches := min(parts(w, patchSide)*parts(h, patchSide), r.Limit)
		return scaled(patches, r.Ratio)
	case imageArea:
		shrink := min(1, float64(r.Edge)/max(w, h))
		return parts(w*shrink*h*shrink, float64(r.Pixels))
	}
	return ImageTokens
}

// parts is how many parts of a size something has, the last one perhaps not
// full.
func parts(whole, size float64) int {
	n := int(whole / size)
	if float64(n)*size < whole-1e-6 {
		n++
	}
	return max(n, 1)
}

// imageBlock is what the formats of OpenAI and Anthropic say of an image.
type imageBlock struct {
	// ImageURL is an object with url and detail, or the address itself.
	ImageURL json.RawMessage `json:"image_url"`
	Detail   string          `json:"detail"`
	Source   struct {
		Data string `json:"data"`
	} `json:"source"`
}

// imageSize returns the size of the image that a block carries, zero where it
// is elsewhere or cannot be read, and whether the cheapest form is asked for.
func imageSize(raw json.RawMessage) (width, height int, low bool) {
	var block imageBlock
	if json.Unmarshal(raw, &block) != nil {
		return 0, 0, false
	}
	var object struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(block.ImageURL, &object) != nil {
		object.Detail = block.Detail
		_ = json.Unmarshal(block.ImageURL, &object.URL) // else there is no address
	}
	data := block.Source.Data
	if header, payload, ok := strings.Cut(object.URL, ","); ok && strings.HasPrefix(header, "data:") && strings.HasSuffix(header, ";base64") {
		data = payload
	}
	info := media.InfoOfBase64("image/", data)
	width, height = info.Width, info.Height
	return width, height, object.Detail == "low"
}
