package vector

import (
	"math"
	"math/rand/v2"
)

const (
	// clusterBlocks is how many blocks in order of arrival become blocks of
	// neighbours at once: some 30,000 vectors, so that there are enough of a kind.
	clusterBlocks = 16
	// clusterVectors is how many vectors a block of neighbours should have.
	clusterVectors = 256
	// clusterRounds and clusterSample bound the training: more moves the centres
	// little.
	clusterRounds = 8
	clusterSample = 8192
	// minCluster is the smallest block of neighbours; what is left of smaller
	// ones goes to the next centre.
	minCluster = 32
)

// clustered packs vectors so that neighbours come into the same block (k-means).
func clustered(ordinals []uint32, rotated [][]float32, capacity int) []*packedVectors {
	if len(ordinals) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(uint64(len(ordinals)), uint64(ordinals[0])))
	centres := train(rng, rotated, max(1, len(rotated)/clusterVectors))
	groups := make([][]int, len(centres))
	for i, v := range rotated {
		c := nearestCentre(centres, v)
		groups[c] = append(groups[c], i)
	}
	var blocks []*packedVectors
	for _, group := range groups {
		for len(group) > 0 {
			n := min(len(group), capacity)
			blocks = append(blocks, gather(ordinals, rotated, group[:n]))
			group = group[n:]
		}
	}
	return blocks
}

func gather(ordinals []uint32, rotated [][]float32, group []int) *packedVectors {
	members, vectors := make([]uint32, len(group)), make([][]float32, len(group))
	for i, n := range group {
		members[i], vectors[i] = ordinals[n], rotated[n]
	}
	return newBlock(members, vectors)
}

// centre is the middle of a cluster with half of its square, which is what
// comparing distances needs.
type centre struct {
	at   []float32
	half float32
}

func newCentre(at []float32) centre { return centre{at, product(at, at) / 2} }

// train finds k centres of a sample.
func train(rng *rand.Rand, vectors [][]float32, k int) []centre {
	sample := make([][]float32, min(len(vectors), max(clusterSample, k)))
	for i, n := range rng.Perm(len(vectors))[:len(sample)] {
		sample[i] = vectors[n]
	}
	centres := make([]centre, k)
	for i := range centres {
		centres[i] = newCentre(sample[i])
	}
	for range clusterRounds {
		groups := make([][][]float32, k)
		for _, v := range sample {
			c := nearestCentre(centres, v)
			groups[c] = append(groups[c], v)
		}
		for i, group := range groups {
			if len(group) < minCluster*len(sample)/max(1, len(vectors)) || len(group) == 0 {
				// Nobody wants it: it tries its luck elsewhere.
				centres[i] = newCentre(sample[rng.IntN(len(sample))])
				continue
			}
			centres[i] = newCentre(mean(group))
		}
	}
	return centres
}

func nearestCentre(centres []centre, v []float32) int {
	best, nearest := float32(math.Inf(-1)), 0
	for i, c := range centres {
		if score := product(c.at, v) - c.half; score > best {
			best, nearest = score, i
		}
	}
	return nearest
}
