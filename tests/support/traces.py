"""Small traces in the columns of published ones, written by hand."""

from __future__ import annotations

from typing import Any

OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,3152,1000,1,460,V100M16|V100M32,BE,Running,100,400,150
p1,88000,,8,1000,,LS,Succeeded,120,300,
p2,4000,2000,0,0,,LS,Running,130,400,150
"""
PAI = """j0,ps,1.0,Terminated,10.0,60.0,600.0,29.296875,0.0,
j0,worker,2.0,Terminated,10.0,60.0,400.0,29.296875,50.0,MISC
j1,tensorflow,3.0,Failed,20.0,25.0,600.0,,200.0,V100
j2,worker,1.0,Waiting,,,600.0,29.296875,100.0,
"""
PAI_HEADER = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
7,u1,v1,16,32,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 19:41:11,3600,10
8,u1,v1,4,16,1,CANCELLED,2020-06-09 18:42:01,,,0,0
9,u1,v1,4,16,1,FAILED,2020-06-09 18:43:01,2020-06-09 18:43:01,2020-06-09 18:43:31,30,0
"""
KALOS = """job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,submit_time,start_time,end_time,duration,queue
k,u,8,64,960,1000,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,18,10.0
l,u,1,8,128,,2023-05-17 21:00:58+10:00,2023-05-17 21:00:58+10:00,2023-05-17 21:10:58+10:00,600,0
"""


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{j}" for j in range(count)]} for i, count in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


PHILLY: list[Any] = [
    {
        "status": "Pass",
        "vc": "v",
        "jobid": "a",
        "user": "u",
        "submitted_time": "2017-10-07 01:00:00",
        "attempts": [
            attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 4),
            attempt("2017-10-07 01:03:00", "2017-10-07 01:13:00", 4, 4),
        ],
    },
    {"jobid": "b", "submitted_time": "2017-10-07 02:00:00", "attempts": []},
    {"jobid": "c", "submitted_time": "2017-10-07 00:59:30", "attempts": [attempt(None, None, 1)]},
    {"jobid": "d", "submitted_time": "soon", "attempts": [attempt("2017-10-07 01:01:00", None, 1)]},
]

MODELS = """job_id,submit_s,num_gpus,duration_s,model,batch,pattern,bandwidth_sensitive
a,0,2,1,vgg,4,,
b,0,1,1,alexnet,,,
c,0,3,1,lstm,1,ring,
d,0,2,1,lstm,1,,0
e,0,1,1,vgg,8,,1
"""
