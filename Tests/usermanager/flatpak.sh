#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program as Flatpak would run it, as far as others can see: flatpak.sh HOME APPLICATION COMMAND...
#
# Started by root in the namespaces of namespace.py. The program runs as the owner of HOME, in the control group of an
# application's scope, in namespaces of its own, with a root that has the file by which a Flatpak is known, and all
# directories of the machine.

home=$1 application=$2
shift 2
user=$(stat -c %u "$home")
slice=$(sed -n 's,^0::\(.*\)/init.scope$,\1,p' /proc/1/cgroup)
scope=/sys/fs/cgroup$slice/user@$user.service/app-flatpak-$application-4711.scope
mkdir "$scope" && echo 0 >"$scope/cgroup.procs" || exit
exec setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all --pdeathsig KILL \
  unshare --user --map-root-user --mount sh -c '
    root=$1/flatpak
    mkdir "$root" && mount -t tmpfs none "$root" || exit
    for entry in /*; do
      if [ -h "$entry" ]; then
        cp -P "$entry" "$root$entry"
      elif [ -d "$entry" ]; then
        mkdir "$root$entry" && mount --rbind "$entry" "$root$entry"
      fi
    done
    printf "[Application]\nname=%s\n" "$2" >"$root/.flatpak-info"
    shift 2
    exec unshare --root "$root" "$@"
  ' sh "$home" "$application" "$@"
