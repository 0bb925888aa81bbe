"""Bodies of zstd, frame after frame, by a decoder that is not ours."""

import zstandard


class ZstdFrames:
    """Decodes what comes piece by piece, like zlib's decompressobj. With a dictionary, frames that do not name it are read,
    too."""

    def __init__(self, dictionary=None):
        data = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self.decompressor = zstandard.ZstdDecompressor(dict_data=data)
        self.frame = None
        self.frames = self.with_dictionary = 0  # that have begun; of these, that name a dictionary

    @property
    def eof(self):
        """Is it between two frames?"""
        return self.frame is None

    unused_data = b""

    def decompress(self, data):
        said = b""
        while data:
            if self.frame is None:
                self.frame = self.decompressor.decompressobj()
                self.frames += 1
                self.with_dictionary += bool(zstandard.get_frame_parameters(data).dict_id)
            said += self.frame.decompress(data)
            if not self.frame.eof:
                break
            data, self.frame = self.frame.unused_data, None
        return said
