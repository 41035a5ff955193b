# Sourced: a copy of the checkout's files in build/NAME, where modules are built in another way; what has not changed
# keeps its time, and is not built again.
copy_beside() {
    local root folder=$2
    root=$(cd "$1" && pwd)
    mkdir -p "$folder"
    git -C "$root" ls-files -z | while IFS= read -r -d '' file; do
        if [[ -e $root/$file ]] && ! cmp -s "$root/$file" "$folder/$file"; then
            mkdir -p "$(dirname "$folder/$file")"
            cp "$root/$file" "$folder/$file"
        fi
    done
}
