"""Where the API server takes each kind of manifest, and whether it has kept all of it."""

from __future__ import annotations

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Pod": "/api/v1/namespaces/{}/pods?dryRun=All",  # it is checked, and does not run
    "Service": "/api/v1/namespaces/{}/services?dryRun=All",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims?dryRun=All",
    "Job": "/apis/batch/v1/namespaces/{}/jobs?dryRun=All",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


def is_part(value: object, whole: object) -> bool:
    """Return True if nothing of a value is missing in another: the API server drops fields that it does not know.

    A quantity that is written as a number comes back as a text.
    """
    match value, whole:
        case dict(), dict():
            return all(key in whole and is_part(one, whole[key]) for key, one in value.items())
        case list(), list():
            return len(value) == len(whole) and all(map(is_part, value, whole))
        case int(), str() if not isinstance(value, bool):
            return str(value) == whole
        case _:
            return value == whole
