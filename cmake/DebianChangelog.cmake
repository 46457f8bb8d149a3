# cmake -DVERSION=… -DMAINTAINER=… -DOUTPUT=FILE -P: writes a changelog in Debian's format that refers to ours. SOURCE_DATE_EPOCH is its time.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${OUTPUT}" "attnscope (${VERSION}) unstable; urgency=medium\n\n  * What has changed stands in CHANGELOG.md.gz.\n\n -- ${MAINTAINER}  ${date}\n")
