// Reads a machine from a text, places two jobs, asks why a third one has to wait, and releases.
//
//	go build place.go
//	nvidia-smi topo -m | ./place [VIRTUAL_ENVIRONMENT [OPTIONS]]
//
// OPTIONS is what the text leaves open, as JSON: such a matrix does not name the GPUs' model, as '{"gpu_model": "H100"}'
// does, and without it a speed is assumed.
package main

/*
#cgo pkg-config: topoplace_c
#include <stdlib.h>
#include <topoplace.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"unsafe"
)

// cString returns text for C, to be freed, and NULL for "".
func cString(text string) *C.char {
	if text == "" {
		return nil
	}
	return C.CString(text)
}

func free(text *C.char) { C.free(unsafe.Pointer(text)) }

// failure returns the error of a call, nil if there is none.
func failure(status C.topoplace_status, message *C.char) error {
	if status == C.TOPOPLACE_OK {
		return nil
	}
	defer C.topoplace_free_text(message)
	return errors.New(C.GoString(message))
}

// Start starts Python, that of the directory `python`, or the default for "".
func Start(python string) error {
	directory := cString(python)
	defer free(directory)
	var message *C.char
	status := C.topoplace_start(directory, &message)
	return failure(status, message)
}

// Cluster is a machine, its jobs, and the policy that places them.
type Cluster struct {
	topology *C.topoplace_topology
	cluster  *C.topoplace_cluster
	policy   *C.topoplace_policy
}

// NewCluster reads a machine from what a tool prints.
func NewCluster(text []byte, options, policy string) (*Cluster, error) {
	if len(text) == 0 {
		return nil, errors.New("the text is empty")
	}
	cOptions, cPolicy := cString(options), cString(policy)
	defer free(cOptions)
	defer free(cPolicy)
	made := &Cluster{}
	var message *C.char
	status := C.topoplace_topology_from_text((*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)), nil, cOptions,
		&made.topology, &message)
	if status == C.TOPOPLACE_OK {
		status = C.topoplace_cluster_new(&made.topology, 1, nil, &made.cluster, &message)
	}
	if status == C.TOPOPLACE_OK {
		status = C.topoplace_policy_new(cPolicy, nil, &made.policy, &message)
	}
	if err := failure(status, message); err != nil {
		made.Free()
		return nil, err
	}
	return made, nil
}

// Free gives all memory back.
func (c *Cluster) Free() {
	C.topoplace_policy_free(c.policy)
	C.topoplace_cluster_free(c.cluster)
	C.topoplace_topology_free(c.topology)
}

// NumGPUs returns the number of GPUs, busy or free.
func (c *Cluster) NumGPUs() int { return int(C.topoplace_topology_num_gpus(c.topology)) }

// Decision says where a job runs, or why it does not.
type Decision struct {
	GPUs      []int // in task order; nil if the job is not placed
	Bandwidth float64
	Optimal   bool
	Reason    string
}

// Place decides about a job, and allocates what it gets.
func (c *Cluster) Place(id, job string) (Decision, error) {
	cID, cJob := cString(id), cString(job)
	defer free(cID)
	defer free(cJob)
	var decision *C.topoplace_decision
	var message *C.char
	status := C.topoplace_place(c.cluster, c.policy, cID, cJob, &decision, &message)
	return taken(decision), failure(status, message)
}

// Explain says what Place would decide.
func (c *Cluster) Explain(job string) (Decision, error) {
	cJob := cString(job)
	defer free(cJob)
	var decision *C.topoplace_decision
	var message *C.char
	status := C.topoplace_explain(c.cluster, c.policy, cJob, 1, &decision, &message)
	return taken(decision), failure(status, message)
}

// taken copies a decision, and frees it.
func taken(decision *C.topoplace_decision) Decision {
	defer C.topoplace_decision_free(decision)
	if C.topoplace_decision_outcome(decision) != C.TOPOPLACE_PLACED {
		return Decision{Reason: C.GoString(C.topoplace_decision_reason(decision))}
	}
	found := Decision{Optimal: bool(C.topoplace_decision_is_optimal(decision))}
	var count C.size_t
	gpus := C.topoplace_decision_gpus(decision, &count)
	for _, gpu := range unsafe.Slice(gpus, int(count)) {
		found.GPUs = append(found.GPUs, int(gpu))
	}
	name := C.CString("aggregated_bandwidth")
	defer free(name)
	var bandwidth C.double
	C.topoplace_decision_score(decision, name, &bandwidth)
	found.Bandwidth = float64(bandwidth)
	return found
}

// GPU returns the name of a GPU, its machine, and its number there.
func (c *Cluster) GPU(gpu int) (name, machine string, number int, err error) {
	var cName, cMachine, message *C.char
	var cNumber C.int32_t
	status := C.topoplace_topology_gpu(c.topology, C.int32_t(gpu), &cName, &cMachine, &cNumber, &message)
	defer C.topoplace_free_text(cName)
	defer C.topoplace_free_text(cMachine)
	return C.GoString(cName), C.GoString(cMachine), int(cNumber), failure(status, message)
}

// Release frees what a job holds.
func (c *Cluster) Release(id string) error {
	cID := cString(id)
	defer free(cID)
	var message *C.char
	status := C.topoplace_release(c.cluster, cID, &message)
	return failure(status, message)
}

// NumFree returns the number of free GPUs.
func (c *Cluster) NumFree() (int, error) {
	var count C.size_t
	var message *C.char
	status := C.topoplace_cluster_free_gpus(c.cluster, nil, 0, &count, &message)
	return int(count), failure(status, message)
}

func check(err error) {
	if err != nil {
		log.Fatal("place: ", err)
	}
}

func (c *Cluster) placeAndPrint(id, job string) {
	decision, err := c.Place(id, job)
	check(err)
	if decision.GPUs == nil {
		fmt.Printf("%s waits: %s\n", id, decision.Reason)
		return
	}
	fmt.Printf("%s is placed\n", id)
	for task, gpu := range decision.GPUs {
		name, machine, number, err := c.GPU(gpu)
		check(err)
		fmt.Printf("  task %d: %s, number %d on %s\n", task, name, number, machine)
	}
	best := ""
	if decision.Optimal {
		best = "; no placement is better"
	}
	fmt.Printf("  its links have %g GB/s together%s\n", decision.Bandwidth, best)
}

func main() {
	log.SetFlags(0)
	python, options := "", ""
	if len(os.Args) > 1 {
		python = os.Args[1]
	}
	if len(os.Args) > 2 {
		options = os.Args[2]
	}
	check(Start(python))
	text, err := io.ReadAll(os.Stdin)
	check(err)
	cluster, err := NewCluster(text, options, "mapa-preserve")
	check(err)
	defer cluster.Free()
	fmt.Printf("%d GPUs\n", cluster.NumGPUs())

	cluster.placeAndPrint("training", `{"pattern": "ring", "num_tasks": 4, "bandwidth_sensitive": true}`)
	cluster.placeAndPrint("serving", `{"pattern": "ring", "num_tasks": 2}`)
	refusal, err := cluster.Explain(`{"pattern": "ring", "num_tasks": 4}`)
	check(err)
	fmt.Printf("another ring of 4 waits: %s\n", refusal.Reason)
	check(cluster.Release("training"))
	free, err := cluster.NumFree()
	check(err)
	fmt.Printf("training has ended: %d GPUs are free\n", free)
}
