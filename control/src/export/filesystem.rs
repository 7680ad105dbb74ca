//! The mirror under the names that the server crate calls it by.

use super::listing::Listing;
use super::mirror::{Mirror, TRANSFER_BYTES};
use super::tree::ROOT;
use nfs3_server::nfs3_types::nfs3::{
    FSF3_CANSETTIME, FSF3_HOMOGENEOUS, FSF3_SYMLINK, FSINFO3resok, createverf3, fattr3, filename3,
    nfspath3, nfsstat3, nfstime3, post_op_attr, sattr3, stable_how,
};
use nfs3_server::vfs::{
    FileHandleU64, NfsFileSystem, NfsReadFileSystem, ReadDirPlusIterator, VFSCapabilities,
};

impl NfsReadFileSystem for Mirror {
    type Handle = FileHandleU64;

    fn root_dir(&self) -> FileHandleU64 {
        FileHandleU64::new(ROOT)
    }

    async fn lookup(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'_>,
    ) -> Result<FileHandleU64, nfsstat3> {
        self.state()
            .lookup(directory.as_u64(), name.as_ref())
            .map(FileHandleU64::new)
    }

    async fn getattr(&self, file: &FileHandleU64) -> Result<fattr3, nfsstat3> {
        self.state().attributes(file.as_u64())
    }

    async fn read(
        &self,
        file: &FileHandleU64,
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool), nfsstat3> {
        self.state().read(file.as_u64(), offset, count)
    }

    async fn readdirplus(
        &self,
        directory: &FileHandleU64,
        cookie: u64,
    ) -> Result<impl ReadDirPlusIterator<FileHandleU64>, nfsstat3> {
        Listing::open(self, directory.as_u64(), cookie)
    }

    async fn readlink(&self, file: &FileHandleU64) -> Result<nfspath3<'_>, nfsstat3> {
        self.state().read_link(file.as_u64()).map(nfspath3::from)
    }

    async fn fsinfo(&self, root: &FileHandleU64) -> Result<FSINFO3resok, nfsstat3> {
        Ok(FSINFO3resok {
            obj_attributes: post_op_attr::Some(self.state().attributes(root.as_u64())?),
            rtmax: TRANSFER_BYTES,
            rtpref: TRANSFER_BYTES,
            rtmult: 4096,
            wtmax: TRANSFER_BYTES,
            wtpref: TRANSFER_BYTES,
            wtmult: 4096,
            dtpref: 64 * 1024,
            maxfilesize: i64::MAX.unsigned_abs(),
            time_delta: nfstime3 {
                seconds: 0,
                nseconds: 1,
            },
            properties: FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
        })
    }
}

impl NfsFileSystem for Mirror {
    fn capabilities(&self) -> VFSCapabilities {
        match self.read_only {
            true => VFSCapabilities::ReadOnly,
            false => VFSCapabilities::ReadWrite,
        }
    }

    async fn setattr(&self, file: &FileHandleU64, wanted: sattr3) -> Result<fattr3, nfsstat3> {
        self.state().set(file.as_u64(), &wanted)
    }

    async fn write(
        &self,
        file: &FileHandleU64,
        offset: u64,
        data: &[u8],
        stable: stable_how,
    ) -> Result<(fattr3, stable_how), nfsstat3> {
        self.state().write(file.as_u64(), offset, data, stable)
    }

    async fn create(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'_>,
        wanted: sattr3,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        let made = self
            .state()
            .create(directory.as_u64(), name.as_ref(), &wanted)?;
        Ok((FileHandleU64::new(made.0), made.1))
    }

    async fn create_exclusive(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'_>,
        verifier: createverf3,
    ) -> Result<FileHandleU64, nfsstat3> {
        self.state()
            .create_exclusive(directory.as_u64(), name.as_ref(), verifier)
            .map(FileHandleU64::new)
    }

    async fn mkdir(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'_>,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        let made = self
            .state()
            .make_directory(directory.as_u64(), name.as_ref())?;
        Ok((FileHandleU64::new(made.0), made.1))
    }

    async fn remove(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'_>,
    ) -> Result<(), nfsstat3> {
        self.state().remove(directory.as_u64(), name.as_ref())
    }

    async fn rename<'a>(
        &self,
        from: &FileHandleU64,
        from_name: &filename3<'a>,
        to: &FileHandleU64,
        to_name: &filename3<'a>,
    ) -> Result<(), nfsstat3> {
        self.state().rename(
            (from.as_u64(), from_name.as_ref()),
            (to.as_u64(), to_name.as_ref()),
        )
    }

    async fn symlink<'a>(
        &self,
        directory: &FileHandleU64,
        name: &filename3<'a>,
        target: &nfspath3<'a>,
        _attributes: &sattr3,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        let made = self
            .state()
            .make_link(directory.as_u64(), name.as_ref(), target.as_ref())?;
        Ok((FileHandleU64::new(made.0), made.1))
    }

    async fn commit(
        &self,
        file: &FileHandleU64,
        _offset: u64,
        _count: u32,
    ) -> Result<(), nfsstat3> {
        self.state().commit(file.as_u64())
    }
}
