//go:build !race

package conversation

// underRace makes large tests smaller: the detector slows them tenfold.
const underRace = false
